package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/bus"
	"weir/pkg/lualib"
	"weir/services/standalone"
	"weir/test/testkit"
)

var rounds = flag.Int("rounds", 4, "how often the process is killed")

const (
	sources = 4
	sinks   = 3
)

// world is what the test knows must be true.
type world struct {
	t        testing.TB
	next     int
	mu       sync.Mutex           // guards answered and next
	answered map[string][]int     // by source: keys of writes that were answered
	follows  map[[2]string][2]int // by sink and source: keys answered before the follow began, and after it was answered
	sinks    map[string][]string  // the sources that a sink follows
}

func newWorld(t testing.TB) *world {
	return &world{t: t, answered: map[string][]int{}, follows: map[[2]string][2]int{}, sinks: map[string][]string{}}
}

// load bumps sources from several callers until ctx ends.
func (w *world) load(ctx context.Context, c *bus.Client) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			source := fmt.Sprintf("s%d", i%sources)
			for ctx.Err() == nil {
				w.mu.Lock()
				w.next++
				key := w.next
				w.mu.Unlock()
				method := "bump"
				if key%16 == 0 {
					method = "later"
				}
				if _, err := call(ctx, c, "Source/"+source, method, key); err == nil {
					w.mu.Lock()
					w.answered[source] = append(w.answered[source], key)
					w.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// follow lets a new sink follow all sources.
func (w *world) follow(c *bus.Client, sink string) {
	w.followFor(context.Background(), c, sink)
}

// followFor is follow until ctx ends. A sink that follows already is left alone.
func (w *world) followFor(ctx context.Context, c *bus.Client, sink string) {
	for i := range sources {
		source := fmt.Sprintf("s%d", i)
		if slices.Contains(w.sinks[sink], source) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		w.mu.Lock()
		before := w.next
		w.mu.Unlock()
		_, err := call(ctx, c, "Sink/"+sink, "watch", source)
		cancel()
		if err != nil {
			continue // killed meanwhile: nothing is known of this edge
		}
		w.mu.Lock()
		w.follows[[2]string{sink, source}] = [2]int{before, w.next}
		w.mu.Unlock()
		w.sinks[sink] = append(w.sinks[sink], source)
	}
}

// check waits until every follower has what it must have, and compares. what has happened before.
func (w *world) check(c *bus.Client, what string) {
	w.t.Helper()
	ctx, cancel := within(100 * time.Second)
	defer cancel()
	total := 0
	for i := range sources {
		source := fmt.Sprintf("s%d", i)
		written := w.written(ctx, c, source)
		total += len(written)
		for sink, follows := range w.sinks {
			if slices.Contains(follows, source) {
				w.checkSink(ctx, c, sink, source, written)
			}
		}
	}
	w.t.Logf("%s: %d writes, all that were answered among them; %d followers, each with every event since its follow, in order, once",
		what, total, len(w.sinks))
}

// written reads what a source has, when its alarm has rung: every write that was answered, none twice.
func (w *world) written(ctx context.Context, c *bus.Client, source string) []int {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		waiting, err := call(ctx, c, "Source/"+source, "waiting")
		if err != nil {
			w.t.Fatal(err)
		}
		if string(waiting) != "0" { // even what was not answered may ring yet
			if time.Now().After(deadline) {
				w.t.Fatalf("the alarm of Source/%s does not ring: %s writes wait for it", source, waiting)
			}
			<-time.After(20 * time.Millisecond)
			continue
		}
		written, err := keys(ctx, c, "Source/"+source, "writes")
		if err != nil {
			w.t.Fatal(err)
		}
		has := map[int]bool{}
		for _, k := range written {
			if has[k] {
				w.t.Fatalf("Source/%s has the write %d twice", source, k)
			}
			has[k] = true
		}
		lost := slices.IndexFunc(w.answered[source], func(k int) bool { return !has[k] })
		if lost < 0 {
			return written
		}
		w.t.Fatalf("Source/%s lost the write %d, which was answered", source, w.answered[source][lost])
	}
}

func (w *world) checkSink(ctx context.Context, c *bus.Client, sink, source string, written []int) {
	w.t.Helper()
	for {
		seen, err := keys(ctx, c, "Sink/"+sink, "seen", source)
		if err != nil {
			w.t.Fatal(err)
		}
		if !isSubsequence(seen, written) {
			w.t.Fatalf("Sink/%s has events of Source/%s out of order or twice:\n%v\n%v", sink, source, seen, written)
		}
		// Each topic has an edge of its own, with a start of its own: of each the follower has the end.
		missing := ""
		for topic := range 2 {
			has, all := ofTopic(seen, topic), ofTopic(written, topic)
			if !slices.Equal(has, all[len(all)-len(has):]) {
				missing = difference(has, all)
			}
			for _, k := range all[:len(all)-len(has)] {
				if f := w.follows[[2]string{sink, source}]; k > f[1] {
					missing = fmt.Sprintf("the event %d, published after the follow was answered at %d", k, f[1])
				}
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("Sink/%s does not get the rest of Source/%s:\n%s", sink, source, missing)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ofTopic gives those of tock (0) or tick (1).
func ofTopic(list []int, topic int) (out []int) {
	for _, k := range list {
		if (k%3 == 0) == (topic == 0) {
			out = append(out, k)
		}
	}
	return out
}

// difference shows where two lists part.
func difference(seen, written []int) string {
	at := slices.Index(written, seen0(seen))
	for i, k := range seen {
		if at < 0 || at+i >= len(written) || written[at+i] != k {
			return fmt.Sprintf("at %d: seen %v, written %v", i, seen[max(0, i-3):min(len(seen), i+5)], written[max(0, min(at+i, len(written))-3):max(0, min(len(written), at+i+5))])
		}
	}
	return fmt.Sprintf("%d of %d from %d on", len(seen), len(written), at)
}

func seen0(seen []int) int {
	if len(seen) == 0 {
		return -1
	}
	return seen[0]
}

func isSubsequence(seen, written []int) bool {
	i := 0
	for _, k := range written {
		if i < len(seen) && seen[i] == k {
			i++
		}
	}
	return i == len(seen)
}

// TestKill kills weir dev under load, time and again; every other time its NATS has lost its store.
// spec: OBJ-6, LOG-2, DLV-5
func TestKill(t *testing.T) {
	dir := t.TempDir()
	p := &process{t: t, bin: build(t, dir), app: filepath.Join(dir, "app"), data: filepath.Join(dir, "data")}
	archive, err := txtar.ParseFile("app.txtar")
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteApp(t, p.app, archive)
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	defer p.log.Close()
	w := newWorld(t)
	p.start()
	for i := range sinks {
		w.follow(p.client, fmt.Sprintf("k%d", i))
	}
	for round := range *rounds {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			var both sync.WaitGroup
			both.Go(func() { w.load(ctx, p.client) })
			both.Go(func() { w.follow(p.client, fmt.Sprintf("r%d", round)) })
			both.Wait()
			close(done)
		}()
		<-time.After(300*time.Millisecond + rand.N(900*time.Millisecond))
		p.kill()
		cancel()
		<-done
		what := fmt.Sprintf("kill %d", round+1)
		if round%2 == 1 {
			what += ", NATS's store gone"
			if err := os.RemoveAll(filepath.Join(p.data, "nats")); err != nil {
				t.Fatal(err)
			}
		}
		p.start()
		w.check(p.client, what)
	}
	p.stop()
	p.start()
	w.check(p.client, "stopped and started")
	p.stop()
}

func build(t testing.TB, dir string, flags ...string) string {
	bin := filepath.Join(dir, "weir")
	if out, err := exec.Command("go", append(append([]string{"build"}, flags...), "-o", bin, "weir/cmd/weir")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestNATSUnderLoad restarts the embedded NATS under load, with its store and without.
// spec: DLV-5
func TestNATSUnderLoad(t *testing.T) {
	dir := t.TempDir()
	archive, err := txtar.ParseFile("app.txtar")
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteApp(t, filepath.Join(dir, "app"), archive)
	log := testkit.Logger(t)
	a, err := app.Load(filepath.Join(dir, "app"), app.Options{Library: lualib.Open(log)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s, err := standalone.Open(ctx, standalone.Config{App: a, Data: filepath.Join(dir, "data"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	w := newWorld(t)
	for i := range sinks {
		w.follow(s.Client(), fmt.Sprintf("k%d", i))
	}
	for round := range 4 {
		load, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { w.load(load, s.Client()); close(done) }()
		<-time.After(300 * time.Millisecond)
		between, what := os.RemoveAll, "NATS restarted without its store"
		if round%2 == 0 {
			between, what = nil, "NATS restarted"
		}
		if err := s.RestartNATS(between); err != nil {
			t.Fatal(err)
		}
		<-time.After(700 * time.Millisecond)
		cancel()
		<-done
		w.check(s.Client(), what)
	}
	stop()
	running.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
