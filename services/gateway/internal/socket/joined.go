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

// joinedBytes is how much is held back before it goes out.
const joinedBytes = 32 << 10

// joined is a net.Conn that can hold back what is written, so that many frames leave in one system call, which is most
// of a frame's cost. It is safe for concurrent use.
type joined struct {
	net.Conn
	mu   sync.Mutex
	held *[]byte // nil: what is written goes straight out

	deadline atomic.Int64 // of writes, as it was last set
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Write implements net.Conn. While writes are held it cannot fail: flush does.
func (j *joined) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		return j.Conn.Write(p)
	}
	*j.held = append(*j.held, p...)
	if len(*j.held) < joinedBytes {
		return len(p), nil
	}
	_, err := j.Conn.Write(*j.held)
	*j.held = (*j.held)[:0]
	return len(p), err
}

// SetWriteDeadline implements net.Conn. One that is less than a second later than the last is left as it is: to set it
// costs as much as a small write, and is asked for before each.
func (j *joined) SetWriteDeadline(t time.Time) error {
	if d := time.Duration(t.UnixNano() - j.deadline.Load()); d >= 0 && d < time.Second {
		return nil
	}
	j.deadline.Store(t.UnixNano())
	return j.Conn.SetWriteDeadline(t)
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
		_, err = j.Conn.Write(*j.held)
	}
	if cap(*j.held) <= 2*joinedBytes {
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
	h.conn = &joined{Conn: c}
	return h.conn, rw, nil
}
