package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
)

// jobs are what the other process can do beside reading sockets. Each says "ready", goes on until its standard input ends
// or its work is done, and writes what came of it as JSON.
var jobs = map[string]func(order) error{
	"probe": probe, "half": halfOpen, "flood frames": floodFrames, "flood calls": floodCalls, "flood requests": floodRequests,
}

// Work is what the other process is at.
type Work struct {
	t   testing.TB
	in  io.Closer
	out *bufio.Reader
}

func begin(t testing.TB, o order) *Work {
	t.Helper()
	w := &Work{t: t}
	w.in, w.out = spawn(t, o)
	return w
}

// End asks the work to end, and Wait does not ask. Both read into result what came of it.
func (w *Work) End(result any) {
	w.t.Helper()
	_ = w.in.Close()
	w.Wait(result)
}

// Wait reads what came of the work when it has ended by itself.
func (w *Work) Wait(result any) {
	w.t.Helper()
	if err := json.NewDecoder(w.out).Decode(result); err != nil {
		w.t.Fatalf("what came of the clients' work: %v", err)
	}
}

// ended closes when standard input ends. Ready is said.
func ended() <-chan struct{} {
	c := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(c)
	}()
	fmt.Println("ready")
	return c
}

func answer(result any) error { return json.NewEncoder(os.Stdout).Encode(result) }
