// Package clients opens many websockets from a process of its own, so that a benchmark measures the server: descriptors
// and memory of the clients count elsewhere, and one thread reads all of them, with as few system calls as it can. Linux
// only.
package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const variable = "BENCH_CLIENTS"

// order is what the other process is to do.
type order struct {
	Addr, Path string
	Count      int
	Hello      string // a text frame that each socket sends first; empty for none
	Deaf       bool   // never read
	Counter    string // the file that both processes map
}

// Main runs tests, or the clients if this process was started for them. Call it from TestMain.
func Main(m *testing.M) {
	if text := os.Getenv(variable); text != "" {
		var o order
		err := json.Unmarshal([]byte(text), &o)
		if err == nil {
			err = serve(o)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "clients:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Mark is the byte that is counted by itself: an event that has it once is counted once, however frames are joined.
const Mark = '#'

// counts are in memory that both processes share.
type counts struct{ bytes, marks atomic.Int64 }

// Clients are the open sockets of the other process. They close when the test ends.
type Clients struct{ c *counts }

// Open opens n websockets to ws://addr+path. Each sends hello first, if it is not empty.
func Open(t testing.TB, addr, path string, n int, hello string) *Clients {
	t.Helper()
	return open(t, order{Addr: addr, Path: path, Count: n, Hello: hello})
}

// OpenDeaf opens n websockets that never read.
func OpenDeaf(t testing.TB, addr, path string, n int) {
	t.Helper()
	open(t, order{Addr: addr, Path: path, Count: n, Deaf: true})
}

func open(t testing.TB, o order) *Clients {
	t.Helper()
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, make([]byte, os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	shared, err := counter(file)
	if err != nil {
		t.Fatal(err)
	}
	o.Counter = file
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), variable+"="+string(text))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // this is its sign to end
		_ = c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the clients said %q: %v", line, err)
	}
	return &Clients{shared}
}

// Await waits until all sockets together have received so many marks.
func (c *Clients) Await(marks int64) {
	for c.c.marks.Load() < marks {
		<-time.After(200 * time.Microsecond)
	}
}

// Settle waits until nothing has come for a while.
func (c *Clients) Settle() {
	for before := int64(-1); c.c.bytes.Load() != before; {
		before = c.c.bytes.Load()
		<-time.After(500 * time.Millisecond)
	}
}

// Pace publishes n events, each with one mark, 32 on their way at most, so that no queue overflows, and waits until every
// one of so many sockets has them.
func (c *Clients) Pace(n, sockets int, publish func(n int)) {
	want := c.c.marks.Load()
	for i := range n {
		publish(100_000 + i%800_000)
		want += int64(sockets)
		c.Await(want - 32*int64(sockets))
	}
	c.Await(want)
}

// counter maps the file that both processes count in.
func counter(file string) (*counts, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*counts)(unsafe.Pointer(&m[0])), nil
}
