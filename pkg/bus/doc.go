// Package bus is how a service speaks over NATS: it connects, finds the host of an object, and asks routers and
// hosts, trying again exactly when nobody has taken a request.
//
// A Client is safe for concurrent use. A request is sent a second time only when NATS said that no one listens, when
// it was never sent, or when its receiver said that it had no room: so a call runs at most once.
package bus
