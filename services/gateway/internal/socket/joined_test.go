package socket

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A write has the deadline that was set when it began: neither a ping's answer shortens it, nor is a later one spared.
func TestWriteDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		j := &joined{Conn: a}

		go func() { _, _ = b.Read(make([]byte, 1)) }()
		if _, err := j.Write([]byte("x")); err != nil {
			t.Errorf("without a deadline: %v", err)
		}

		_ = j.SetWriteDeadline(time.Now().Add(10 * time.Second))
		j.hold()
		_, _ = j.Write([]byte("held"))
		done := make(chan error)
		go func() { done <- j.flush() }()
		time.Sleep(time.Second)
		_ = j.SetWriteDeadline(time.Now().Add(time.Second)) // a pong
		time.Sleep(5 * time.Second)
		if _, err := io.ReadFull(b, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("a write that was given 10 s failed after 6: %v", err)
		}

		for range 2 { // each asks for a second, and gets it
			_ = j.SetWriteDeadline(time.Now().Add(time.Second))
			go func() { time.Sleep(900 * time.Millisecond); _, _ = b.Read(make([]byte, 1)) }()
			if _, err := j.Write([]byte("x")); err != nil {
				t.Errorf("a write that was given 1 s failed after 0.9: %v", err)
			}
			time.Sleep(50 * time.Millisecond)
		}

		_ = j.SetWriteDeadline(time.Now().Add(time.Second))
		began := time.Now()
		if _, err := j.Write([]byte("x")); err == nil || time.Since(began) != time.Second {
			t.Errorf("a write that nobody reads: %v after %v", err, time.Since(began))
		}
	})
}

// What is written at once is bounded, and is at least one frame.
func TestPieces(t *testing.T) {
	s := &Socket{out: []outgoing{{size: 100 << 10}, {size: 10 << 10}, {size: 20 << 10}, {size: 3 << 10}}}
	for i, want := range []int{1, 2, 1, 0} {
		if got := s.piece(); len(got) != want {
			t.Errorf("piece %d has %d frames, want %d", i, len(got), want)
		}
	}
	if s.out != nil {
		t.Error("the queue keeps its memory")
	}
}
