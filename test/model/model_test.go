package model

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

var (
	seeds = flag.Int("seeds", 200, "how many runs")
	first = flag.Uint64("first", 1, "the first seed")
	steps = flag.Int("steps", 60, "operations in a run")
)

// move is something that happens, as often as its weight says.
type move struct {
	name   string
	weight int
	do     func(w *world)
}

var moves = []move{
	{"put", 24, func(w *world) { w.put(pick(w.rnd, sourceNames)) }},
	{"burst", 10, func(w *world) { w.burst(pick(w.rnd, sourceNames)) }},
	{"follow", 12, func(w *world) { w.follow(pick(w.rnd, sinkNames), pick(w.rnd, sourceNames), pick(w.rnd, topics)) }},
	{"unfollow", 5, func(w *world) { w.unfollow(pick(w.rnd, sinkNames), pick(w.rnd, sourceNames), pick(w.rnd, topics)) }},
	{"connect", 4, (*world).connect},
	{"disconnect", 2, (*world).disconnect},
	{"fail", 2, func(w *world) {
		if sink := pick(w.rnd, sinkNames); w.bad[sink].IsZero() {
			w.until("Sink/"+sink, "bad", true)
			w.bad[sink] = time.Now()
		}
	}},
	{"wait", 6, func(w *world) { time.Sleep(time.Duration(w.rnd.IntN(4000)) * time.Millisecond) }},
	{"sleep", 1, func(w *world) { w.heal(true); time.Sleep(8 * time.Minute) }},
	{"restart", 2, func(w *world) { w.s.Restart() }},
	{"NATS restarts", 1, func(w *world) { w.natsRestart("keep") }},
	{"NATS loses everything", 1, func(w *world) { w.natsRestart("empty") }},
	{"NATS loses the newest", 1, func(w *world) { w.natsRestart("older") }},
	{"a stream is lost", 1, (*world).loseStream},
	{"consumers are lost", 1, (*world).loseConsumers},
	{"newest messages are lost", 1, (*world).loseMessage},
}

// TestModel runs random apps' worth of operations and faults against the real system, from a seed each. After healing
// each follower has exactly the filtered run of the publisher's log since its follow, in order, none missing, none twice;
// a device has each event at most once, in order; the logs and JetStream are empty; and most operations succeeded.
// spec: DLV-1, DLV-5, DLV-12, LOG-1, LOG-8, EDGE-9, CONN-6
func TestModel(t *testing.T) {
	archive, err := txtar.ParseFile("app.txtar")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		testkit.Bubble(t, archive, hostd.Limits{}, func(t *testing.T, s *testkit.System) {
			w := &world{t: t, s: s, rnd: rand.New(rand.NewPCG(seed, 1)), last: map[string]int{}, sinks: map[string]*record{}, bad: map[string]time.Time{},
				sockets: map[*device]*testkit.Socket{}, old: filepath.Join(t.TempDir(), "old")}
			for _, name := range sinkNames {
				w.sinks[name] = &record{name: name, lives: map[key][]*life{}}
			}
			w.run(seed)
			total += w.tried
		})
		if n := seed - *first + 1; n%250 == 0 || n == uint64(*seeds) {
			t.Logf("seeds %d to %d: %d operations and faults; each follower had its filtered run, in order, once; logs and JetStream empty", *first, seed, total)
		}
		if t.Failed() {
			t.Fatalf("seed %d: run it again with -first %d -seeds 1", seed, seed)
		}
	}
}

func (w *world) run(seed uint64) {
	sum := 0
	for _, m := range moves {
		sum += m.weight
	}
	for range *steps {
		n := w.rnd.IntN(sum)
		for _, m := range moves {
			if n -= m.weight; n < 0 {
				w.note("%s", m.name)
				m.do(w)
				break
			}
		}
		w.heal(false)
	}
	w.heal(true)
	time.Sleep(3 * time.Minute)
	// One more of each topic, so that devices show that they live.
	for _, source := range sourceNames {
		for range 4 {
			w.put(source)
		}
	}
	time.Sleep(2 * time.Minute)
	if problem := w.check(); problem != "" {
		w.t.Errorf("seed %d: %s\n%s", seed, problem, strings.Join(w.history, "\n"))
		return
	}
	if w.failed*20 > w.tried {
		w.t.Errorf("seed %d: %d of %d operations failed\n%s", seed, w.failed, w.tried, strings.Join(w.history, "\n"))
	}
	for d, c := range w.sockets {
		delete(w.sockets, d)
		c.Close()
	}
	time.Sleep(12 * time.Minute) // everything falls asleep
	w.admin(func(ctx context.Context, js jetstream.JetStream) {
		if list := streams(ctx, js); len(list) > 0 {
			w.t.Errorf("seed %d: streams are left: %v\n%s", seed, list, strings.Join(w.history, "\n"))
		}
	})
	for _, source := range sourceNames {
		for _, e := range w.s.Edges("Source/" + source).Edges {
			if e.Lag != 0 {
				w.t.Errorf("seed %d: Source/%s keeps events for %+v", seed, source, e)
			}
		}
	}
	synctest.Wait()
}

// check compares everything.
func (w *world) check() string {
	logs := map[string][]event{}
	for _, source := range sourceNames {
		log, problem := w.events("Source/"+source, "writes")
		if problem != "" {
			return problem
		}
		logs[source] = log
		for _, r := range w.sinks {
			seen, problem := w.events("Sink/"+r.name, "seen", source)
			if problem == "" {
				problem = r.check(source, log, seen, true)
			}
			if problem != "" {
				return problem
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.devices {
		if problem := d.check(logs); problem != "" {
			return problem
		}
		for k, s := range d.edges {
			if _, connected := w.sockets[d]; !connected || d.over {
				break
			}
			for _, e := range logs[k.source][max(0, len(logs[k.source])-4):] {
				if e.Topic == k.topic && e.N > s.from && takes(s.filter, e.N) && !d.has(k, e.N) {
					return fmt.Sprintf("device %s lives and does not get %v of %s: %+v has %v", d.id, e, k.source, d.edges, d.got)
				}
			}
		}
	}
	return ""
}

func (d *device) has(k key, n int) bool {
	for _, g := range d.got {
		if g.Source == k.source && g.Topic == k.topic && g.N == n {
			return true
		}
	}
	return false
}

func (w *world) events(object, method string, args ...any) ([]event, string) {
	out, err := w.call(object, method, args...)
	if err != nil {
		return nil, fmt.Sprintf("%s:%s: %v", object, method, err)
	}
	var list []event
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err.Error()
	}
	return list, ""
}
