package socket

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// joined is a net.Conn that can hold back what is written, so that many frames leave in one system call, which is most
// of a frame's cost. It is safe for concurrent use.
type joined struct {
	net.Conn
	wanted atomic.Int64 // the deadline that writes are to have; 0: none
	took   func([]byte) // is told what was read, by who reads; nil: nobody asks

	mu    sync.Mutex // guards what follows, over writes too
	armed int64      // the deadline that they have
	held  *[]byte    // nil: what is written goes straight out
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Read implements net.Conn.
func (j *joined) Read(p []byte) (int, error) {
	n, err := j.Conn.Read(p)
	if j.took != nil {
		j.took(p[:n])
	}
	return n, err
}

// Write implements net.Conn. While writes are held it cannot fail: flush does.
func (j *joined) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		return j.write(p)
	}
	*j.held = append(*j.held, p...)
	return len(p), nil
}

// write arms the deadline and writes. To set one costs as much as a small write: one that is less than a second later
// than what is armed is left as it is, if most of the time is left.
func (j *joined) write(p []byte) (int, error) {
	w, now := j.wanted.Load(), time.Now().UnixNano()
	if later := time.Duration(w - j.armed); w != 0 && (later < 0 || later >= time.Second || j.armed-now < (w-now)/2) {
		if err := j.Conn.SetWriteDeadline(time.Unix(0, w)); err != nil {
			return 0, err
		}
		j.armed = w
	}
	return j.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn, for the writes that begin from now on: the one in progress keeps its own.
func (j *joined) SetWriteDeadline(t time.Time) error {
	j.wanted.Store(t.UnixNano())
	return nil
}

// hold keeps what is written until flush.
func (j *joined) hold() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		j.held = buffers.Get().(*[]byte)
	}
}

// flush writes what was held, and ends the holding.
func (j *joined) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		return nil
	}
	var err error
	if len(*j.held) > 0 {
		_, err = j.write(*j.held)
	}
	if cap(*j.held) <= 2*pieceBytes {
		*j.held = (*j.held)[:0]
		buffers.Put(j.held)
	}
	j.held = nil
	return err
}

// Conn is a websocket whose frames can leave together.
type Conn struct {
	*websocket.Conn
	out *joined
}

// Upgrade takes a request over. An error has been answered.
func Upgrade(u *websocket.Upgrader, w http.ResponseWriter, r *http.Request) (*Conn, error) {
	h := &hijacker{ResponseWriter: w}
	ws, err := u.Upgrade(h, r, nil)
	if err != nil {
		return nil, err
	}
	return &Conn{ws, h.conn}, nil
}

// hijacker puts a joined between the upgrader and the connection.
type hijacker struct {
	http.ResponseWriter
	conn *joined
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if u, ok := c.(interface{ Underlying() net.Conn }); ok {
		c = u.Underlying() // a socket has deadlines of its own
	}
	h.conn = &joined{Conn: c}
	return h.conn, rw, nil
}
