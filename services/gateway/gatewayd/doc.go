// Package gatewayd is the gateway service: it serves an app's web/ folder and its fetch handler over HTTP, and its
// websockets. It keeps nothing; any number of gateways stand beside one another.
//
// Open makes it ready, Serve takes connections from a listener that is given, Close says goodbye to sockets.
package gatewayd
