package gatewayd

import (
	"net"
	"time"
)

const (
	writeWithin = 20 * time.Second // for a piece of an answer to be taken by its client
	writePiece  = 64 << 10
)

// deadlineListener is a listener whose connections wait for a client that does not read, but not for ever.
type deadlineListener struct{ net.Listener }

// Accept implements net.Listener.
func (l deadlineListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &deadlineConn{c}, nil
}

// deadlineConn is such a connection. A websocket, which sees to its own deadlines, takes Underlying. Files are not sent by
// sendfile through it.
type deadlineConn struct{ net.Conn }

// Underlying is the connection itself.
func (c *deadlineConn) Underlying() net.Conn { return c.Conn }

// CloseWrite ends what is sent and leaves what comes, as an HTTP server does before it closes.
func (c *deadlineConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// Write implements net.Conn, piece by piece, so that a client that is slow is not taken for one that does not read.
func (c *deadlineConn) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		if err = c.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			break
		}
		var m int
		m, err = c.Conn.Write(b[:min(len(b), writePiece)])
		n, b = n+m, b[m:]
	}
	return n, err
}
