// Package centrifuge measures centrifuge, a well-known library for sockets in Go, with the same clients and the same load
// as services/gateway/bench measures a gateway: `make bench`. It is a module of its own, so that nothing of Weir depends
// on it.
package centrifuge
