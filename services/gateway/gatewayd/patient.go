package gatewayd

import (
	"net"
	"time"
)

const (
	writeWithin = 30 * time.Second // for a piece of an answer to be taken by its client
	writePiece  = 64 << 10
)

// patient is a listener whose connections wait for a client that does not read, but not for ever.
type patient struct{ net.Listener }

// Accept implements net.Listener.
func (p patient) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &waits{c}, nil
}

// waits is such a connection. A websocket, which sees to its own deadlines, takes Underlying.
type waits struct{ net.Conn }

// Underlying is the connection itself.
func (w *waits) Underlying() net.Conn { return w.Conn }

// Write implements net.Conn, piece by piece, so that a client that is slow is not taken for one that does not read.
func (w *waits) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), writePiece)]
		if err = w.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			break
		}
		var m int
		m, err = w.Conn.Write(piece)
		n, b = n+m, b[m:]
	}
	return n, err
}
