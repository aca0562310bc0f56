package faults

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// tries starts a process until it is ready or ends by itself.
func (c *cluster) tries(name string) (text string, refused bool) {
	c.t.Helper()
	before := len(c.log(name))
	c.start(name)
	ended, process := make(chan *os.ProcessState, 1), c.procs[name].Process
	go func() { s, _ := process.Wait(); ended <- s }()
	var state *os.ProcessState
	until(c.t, 60*time.Second, name+" is ready or ends", func() string {
		select {
		case state = <-ended:
			refused = true
			return ""
		default:
		}
		if status, body := c.get(name, "/readyz"); status != 200 {
			return body
		}
		return ""
	})
	if refused {
		delete(c.procs, name)
		if status := state.ExitCode(); status != 2 {
			c.t.Errorf("%s ended with status %d, not 2", name, status)
		}
	}
	return c.log(name)[before:], refused
}

// lives fails the test if the process with the objects has ended.
func (c *cluster) lives() {
	c.t.Helper()
	for _, name := range []string{"host", "dev"} {
		if c.procs[name] == nil {
			continue
		}
		if status, body := c.get(name, "/healthz"); status != http.StatusOK {
			c.t.Fatalf("%s ended by itself: %d %s", name, status, body)
		}
	}
}

// asleep waits until no object is awake, and none on its way to be.
func (c *cluster) asleep() {
	c.t.Helper()
	until(c.t, 60*time.Second, "all objects sleep", func() string {
		none, wakes := c.wakes()
		if none {
			<-time.After(500 * time.Millisecond)
			if none, later := c.wakes(); none && later == wakes {
				return ""
			}
		}
		return "some are awake"
	})
}

// wakes says whether no object is awake, and how many woke so far, as the metrics have it.
func (c *cluster) wakes() (none bool, wakes string) {
	_, metrics := c.get("host", "/metrics")
	for line := range strings.Lines(metrics) {
		none = none || strings.HasPrefix(line, "weir_objects_awake{") && strings.HasSuffix(line, " 0\n")
		if strings.HasPrefix(line, "weir_wakes_total{") {
			wakes += line
		}
	}
	return none, wakes
}

// until asks until nothing is missing any more.
func until(t testing.TB, patience time.Duration, what string, missing func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		m := missing()
		if m == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not so after %v: %s: %s", patience, what, m)
		case <-time.After(25 * time.Millisecond):
		}
	}
}
