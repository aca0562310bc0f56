package faults

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// link is a TCP proxy before the message server.
type link struct {
	l      net.Listener
	to     string
	delay  atomic.Int64 // nanoseconds, of each piece that passes
	breaks atomic.Int32 // how many pieces are still to be cut in two; with the second half goes the connection
	cut    atomic.Int32 // connections that ended so
	gate   sync.RWMutex // held by who stalls it, over its waiting; by pumps while a piece passes
	mu     sync.Mutex   // guards conns
	conns  map[net.Conn]bool
	done   sync.WaitGroup
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &link{l: l, to: to, conns: map[net.Conn]bool{}}
	p.done.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		p.drop()
		p.done.Wait()
	})
	return p
}

func (p *link) addr() string { return p.l.Addr().String() }

func (p *link) serve() {
	for {
		a, err := p.l.Accept()
		if err != nil {
			p.drop()
			return
		}
		b, err := net.Dial("tcp", p.to)
		if err != nil {
			a.Close()
			continue
		}
		p.mu.Lock()
		p.conns[a], p.conns[b] = true, true
		p.mu.Unlock()
		p.done.Go(func() { p.pump(a, b) })
		p.done.Go(func() { p.pump(b, a) })
	}
}

// pump copies until either side ends, and ends both.
func (p *link) pump(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if d := time.Duration(p.delay.Load()); d > 0 {
				<-time.After(d)
			}
			if !p.pass(to, buf[:n]) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *link) pass(to net.Conn, piece []byte) bool {
	p.gate.RLock()
	defer p.gate.RUnlock()
	if len(piece) > 60 && p.breaks.Add(-1) >= 0 { // longer than a ping
		_, _ = to.Write(piece[:len(piece)/2])
		p.cut.Add(1)
		return false
	}
	_, err := to.Write(piece)
	return err == nil
}

// stall lets nothing pass until the function it gives is called.
func (p *link) stall() (end func()) {
	p.gate.Lock()
	return p.gate.Unlock
}

// drop ends every connection.
func (p *link) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}
