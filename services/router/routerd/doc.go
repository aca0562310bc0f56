// Package routerd is the router service: it authorises follows, and it alone creates and deletes streams and
// consumers, when a relay asks. It keeps nothing; any number of routers share the work as a queue group.
package routerd
