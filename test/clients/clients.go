// Package clients is the other side of benchmarks and overloads, in processes of its own, so that they measure the server:
// descriptors, memory and scheduling of the clients count elsewhere. Many websockets are read by one thread, with as few
// system calls as it can; Probe is the well-behaved client that asks and listens while others flood. Linux only.
package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	Job        string // one of jobs; empty for sockets that are read
	NATS       string // for calls past the gateway
	Token, App string
	After      []byte // what is sent once the answer's head is there
}

// Main runs tests, or the clients if this process was started for them. Call it from TestMain.
func Main(m *testing.M) {
	if text := os.Getenv(variable); text != "" {
		var o order
		err := json.Unmarshal([]byte(text), &o)
		if job := jobs[o.Job]; job != nil && err == nil {
			err = job(o)
		} else if err == nil {
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
	spawn(t, o)
	return &Clients{shared}
}

// spawn starts the other process and waits for its word. It ends when its standard input does, at the latest with the test.
func spawn(t testing.TB, o order) (in io.Closer, out *bufio.Reader) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	if strings.HasPrefix(o.Job, "flood ") { // floods come from elsewhere: they must not win processors from who they flood
		c = exec.Command("nice", "-n", "19", exe)
	}
	c.Env = append(os.Environ(), variable+"="+string(text))
	c.Stderr = os.Stderr
	pipe, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pipe.Close()
		_ = c.Wait()
	})
	out = bufio.NewReader(said)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the clients said %q: %v", line, err)
	}
	return pipe, out
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
