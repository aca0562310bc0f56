package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/test/testkit"
)

// world is one run.
type world struct {
	t       *testing.T
	s       *testkit.System
	rnd     *rand.Rand
	last    map[string]int // by source: the last number that was used
	sinks   map[string]*record
	bad     map[string]time.Time // sinks whose handlers fail, since when
	mu      sync.Mutex           // guards the devices' frames, and the counts
	devices []*device
	sockets map[*device]*testkit.Socket
	old     string // an older copy of the message server's store
	tried   int
	failed  int
	history []string
}

var (
	sourceNames = []string{"s0", "s1", "s2"}
	sinkNames   = []string{"k0", "k1", "k2", "k3"}
	topics      = []string{"a", "b"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (w *world) filter() filter {
	switch w.rnd.IntN(3) {
	case 0:
		odd := true
		return &odd
	case 1:
		odd := false
		return &odd
	}
	return nil
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf(format, args...))
}

// call counts how many operations succeed.
func (w *world) call(object, method string, args ...any) (string, error) {
	parts := make([]string, len(args))
	for i, a := range args {
		data, err := json.Marshal(a)
		if err != nil {
			w.t.Fatal(err)
		}
		parts[i] = string(data)
	}
	out, err := w.s.Call(object, method, parts...)
	purposeful := err != nil && strings.HasPrefix(err.Error(), "on purpose")
	w.mu.Lock()
	w.tried++
	if err != nil && !purposeful {
		w.failed++
		w.history = append(w.history, fmt.Sprintf("%s:%s failed: %v", object, method, err))
	}
	w.mu.Unlock()
	if err != nil || len(out) == 0 {
		return "", err
	}
	return out[0], nil
}

// until calls until it succeeds: what is asked for may then be done twice, to no effect.
func (w *world) until(object, method string, args ...any) {
	for range 20 {
		if _, err := w.call(object, method, args...); err == nil {
			return
		}
		time.Sleep(2 * time.Second)
	}
	w.t.Fatalf("%s:%s does not succeed", object, method)
}

func (w *world) put(source string) {
	w.last[source]++
	_, _ = w.call("Source/"+source, "put", pick(w.rnd, topics), w.last[source])
}

func (w *world) burst(source string) {
	var wg sync.WaitGroup
	for range 3 + w.rnd.IntN(12) {
		w.last[source]++
		topic, n := pick(w.rnd, topics), w.last[source]
		wg.Go(func() { _, _ = w.call("Source/"+source, "put", topic, n) })
	}
	wg.Wait()
}

func (w *world) follow(sink, source, topic string) {
	f := w.filter()
	k := key{source, topic}
	if f == nil {
		w.until("Sink/"+sink, "watch", source, topic)
	} else {
		w.until("Sink/"+sink, "watch", source, topic, map[string]bool{"odd": *f})
	}
	w.sinks[sink].follows(k, w.last[source], f)
}

func (w *world) unfollow(sink, source, topic string) {
	w.until("Sink/"+sink, "unwatch", source, topic)
	w.sinks[sink].unfollows(key{source, topic}, w.last[source])
}

// connect opens a device that follows two topics.
func (w *world) connect() {
	d := &device{id: fmt.Sprint(len(w.devices)), edges: map[key]stage{}}
	var follows []map[string]any
	for range 2 {
		k := key{pick(w.rnd, sourceNames), pick(w.rnd, topics)}
		if _, ok := d.edges[k]; ok {
			continue
		}
		f := w.filter()
		d.edges[k] = stage{w.last[k.source], f}
		one := map[string]any{"source": k.source, "topic": k.topic}
		if f != nil {
			one["filter"] = map[string]bool{"odd": *f}
		}
		follows = append(follows, one)
	}
	data, _ := json.Marshal(follows)
	c, err := w.s.Connect("/?who=" + pick(w.rnd, sinkNames) + "&follows=" + url.QueryEscape(string(data)))
	w.tried++
	if err != nil {
		w.failed++
		return
	}
	w.devices = append(w.devices, d)
	w.sockets[d] = c
	go func() {
		for {
			f, err := c.Next()
			if err != nil && err.Error() == "no frame" {
				continue
			}
			w.mu.Lock()
			if err != nil {
				d.over = true
				w.mu.Unlock()
				return
			}
			var g got
			if d.open = d.open || f == `"open"`; f == `"open"` {
				w.mu.Unlock()
				continue
			}
			if json.Unmarshal([]byte(f), &g) == nil {
				d.got = append(d.got, g)
			}
			w.mu.Unlock()
		}
	}()
	for range 150 {
		w.mu.Lock()
		open, over := d.open, d.over
		w.mu.Unlock()
		if open {
			return
		}
		if over {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.failed++
	delete(w.sockets, d)
	c.Close()
}

func (w *world) disconnect() {
	for d, c := range w.sockets {
		delete(w.sockets, d)
		c.Close()
		return
	}
}

// heal ends what fails before its edges are dropped.
func (w *world) heal(all bool) {
	for sink, since := range w.bad {
		if all || time.Since(since) > 15*time.Second {
			w.until("Sink/"+sink, "bad", false)
			delete(w.bad, sink)
		}
	}
}

// admin runs do on JetStream as an operator might.
func (w *world) admin(do func(ctx context.Context, js jetstream.JetStream)) {
	nc, err := w.s.Standalone.Connect("operator")
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	do(ctx, js)
}

// streams are those of publishers.
func streams(ctx context.Context, js jetstream.JetStream) (list []string) {
	for name := range js.StreamNames(ctx).Name() {
		if strings.HasPrefix(name, "WEIR_") {
			list = append(list, name)
		}
	}
	return list
}

func (w *world) loseStream() {
	w.admin(func(ctx context.Context, js jetstream.JetStream) {
		if list := streams(ctx, js); len(list) > 0 {
			_ = js.DeleteStream(ctx, pick(w.rnd, list))
		}
	})
}

func (w *world) loseConsumers() {
	w.admin(func(ctx context.Context, js jetstream.JetStream) {
		for _, name := range streams(ctx, js) {
			st, err := js.Stream(ctx, name)
			if err != nil {
				continue
			}
			for c := range st.ConsumerNames(ctx).Name() {
				_ = st.DeleteConsumer(ctx, c)
			}
		}
	})
}

func (w *world) loseMessage() {
	w.admin(func(ctx context.Context, js jetstream.JetStream) {
		for _, name := range streams(ctx, js) {
			if st, err := js.Stream(ctx, name); err == nil {
				_ = st.DeleteMsg(ctx, st.CachedInfo().State.LastSeq)
			}
		}
	})
}

// natsRestart restarts the message server: with its store, an empty one, or an older copy of it.
func (w *world) natsRestart(how string) {
	old := w.old
	between := map[string]func(string) error{
		"empty": os.RemoveAll,
		"keep": func(dir string) error { // and copy it for later
			if err := os.RemoveAll(old); err != nil {
				return err
			}
			return os.CopyFS(old, os.DirFS(dir))
		},
		"older": func(dir string) error {
			if _, err := os.Stat(old); err != nil {
				return nil
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.CopyFS(dir, os.DirFS(old))
		},
	}[how]
	if err := w.s.RestartNATS(between); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // until the services are back
}
