package faults

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// watcher is a socket at the gateway that follows the sources, and comes back when it ends.
type watcher struct {
	t    *testing.T
	addr string
	mu   sync.Mutex         // guards got
	got  []map[string][]int // by connection and source: the keys that came
	done sync.WaitGroup
}

func newWatcher(t *testing.T, addr string) *watcher {
	w := &watcher{t: t, addr: addr}
	ctx, cancel := context.WithCancel(context.Background())
	w.done.Go(func() {
		for ctx.Err() == nil {
			w.listen(ctx)
			pause(ctx, 100*time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); w.done.Wait() })
	return w
}

func (w *watcher) listen(ctx context.Context) {
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+w.addr+"/", nil)
	if err != nil {
		return
	}
	resp.Body.Close()
	end := context.AfterFunc(ctx, func() { ws.Close() })
	defer end()
	defer ws.Close()
	got := map[string][]int{}
	w.mu.Lock()
	w.got = append(w.got, got)
	w.mu.Unlock()
	for {
		var f struct {
			Source string
			Key    int
		}
		if ws.ReadJSON(&f) != nil {
			return
		}
		w.mu.Lock()
		got[f.Source] = append(got[f.Source], f.Key)
		w.mu.Unlock()
	}
}

// check: nothing came twice or out of order, and what is published now comes.
// spec: CONN-6
func (w *watcher) check(l *ledger, what string) {
	w.t.Helper()
	until(w.t, 60*time.Second, what+": a socket gets what is published now", func() string {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.bump(ctx, "s0", true, ""); err != nil {
			return err.Error()
		}
		pause(ctx, 300*time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(w.got) == 0 || !slices.Contains(w.got[len(w.got)-1]["s0"], l.next) {
			return "nothing comes"
		}
		return ""
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, source := range []string{"s0", "s1", "s2"} {
		written := l.written(source)
		for _, got := range w.got {
			at := 0
			for _, k := range got[source] {
				i := slices.Index(written[at:], k)
				if i < 0 {
					w.t.Fatalf("%s: the event %d of Source/%s came to a socket twice or out of order: %v", what, k, source, tail(got[source]))
				}
				at += i + 1
				n++
			}
		}
	}
	w.t.Logf("%s: %d events came to %d connections, in order, none twice", what, n, len(w.got))
}
