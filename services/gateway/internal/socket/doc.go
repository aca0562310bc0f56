// Package socket is one websocket: its program's handlers, which run one at a time on pooled VMs, its inbox, and its
// outgoing queue. A connection owns no VM, and no goroutine but its reader while nothing happens.
//
// Whatever overflows closes this socket with a reason that tells the client to come back; nobody else is slowed. The
// methods that others call (Deliver) do not block.
package socket
