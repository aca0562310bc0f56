package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestMessageServer takes the message server away under load, with all or some of what it stored, and what an
// administrator may delete there.
// spec: DLV-11, DLV-12, OBJ-6, EDGE-5
func TestMessageServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.begin()
	nc := c.connect()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(t, c.client(), c.listen)
	for i := range 2 {
		l.follow(fmt.Sprintf("k%d", i))
	}
	type step struct {
		what string
		do   func()
	}
	steps := []step{
		{"killed, with its store", func() { c.kill("nats"); c.start("nats") }},
		{"killed, with an empty store", func() { c.kill("nats"); c.empty(); c.start("nats") }},
		{"killed, without the newest of its store", func() { c.older(l) }},
		{"stopped, its consumers lost with its memory", func() { c.stop("nats"); c.start("nats") }},
		{"the publishers' streams deleted", func() {
			for _, name := range streams(t, js) {
				if err := js.DeleteStream(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"the publishers' streams emptied", func() {
			each(t, js, func(s jetstream.Stream) error { return s.Purge(t.Context()) })
		}},
	}
	rounds := 1
	if *long {
		rounds = 3
		steps = append(steps, step{"every consumer deleted", func() { noConsumers(t, js) }})
	}
	for round := range rounds {
		for i, s := range steps {
			stop := l.load()
			l.more(60)
			s.do()
			c.ready("host", "router", "gateway")
			l.more(30)
			l.follow(fmt.Sprintf("r%d-%d", round, i))
			l.more(30)
			stop()
			l.check(s.what, 150*time.Second)
		}
	}
	c.stop("gateway", "router", "host")
}

// empty takes away what the stopped message server stored.
func (c *cluster) empty() {
	c.t.Helper()
	if err := os.RemoveAll(c.store()); err != nil {
		c.t.Fatal(err)
	}
}

// older lets the message server run on, and gives it back the store that it had before.
func (c *cluster) older(l *ledger) {
	c.t.Helper()
	old := filepath.Join(c.dir, "older")
	c.kill("nats")
	if err := os.CopyFS(old, os.DirFS(c.store())); err != nil {
		c.t.Fatal(err)
	}
	c.start("nats")
	l.more(120)
	c.kill("nats")
	c.empty()
	if err := os.Rename(old, c.store()); err != nil {
		c.t.Fatal(err)
	}
	c.start("nats")
}

// streams gives the names of the publishers' streams, of which there must be some.
func streams(t *testing.T, js jetstream.JetStream) (names []string) {
	t.Helper()
	for name := range js.StreamNames(context.Background()).Name() {
		if strings.HasPrefix(name, "WEIR_") { // the others are buckets
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no publisher has a stream")
	}
	return names
}

func each(t *testing.T, js jetstream.JetStream, do func(jetstream.Stream) error) {
	t.Helper()
	for _, name := range streams(t, js) {
		s, err := js.Stream(context.Background(), name)
		if err == nil {
			err = do(s)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// noConsumers deletes every consumer of every publisher's stream.
func noConsumers(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	n := 0
	each(t, js, func(s jetstream.Stream) error {
		for name := range s.ConsumerNames(context.Background()).Name() {
			if err := s.DeleteConsumer(context.Background(), name); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if n == 0 {
		t.Fatal("no stream has a consumer")
	}
}
