// Package standalone is Weir in one process: a host, a router, a gateway and an embedded NATS server, over in-process
// connections and on the same code path as when they are apart. `weir dev` is this; so is the system in most tests,
// where every listener is given from outside, so that all of it runs in one testing/synctest bubble.
package standalone
