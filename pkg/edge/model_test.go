package edge

import (
	"flag"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// The model drives this package's functions through worlds of publishers, followers, gateways and an adversarial
// transport. Whatever decides is the real function; the files named model_ have the world around it, what a host does
// with the answers (ask, hold, retry, run attempts), and a checker.
//
//	go test ./pkg/edge -run Protocol -seeds 100000
//	go test ./pkg/edge -run Controls -only number -v

var (
	seeds = flag.Int("seeds", 3000, "how many seeds to run")
	first = flag.Uint64("first", 1, "the first seed")
	only  = flag.String("only", "", "run only the controls whose name contains this")
	steps = flag.Int("steps", 1500, "steps of a world before it heals")
)

// search runs seeds on all CPUs until one fails, and says which. tamper breaks the rules, if it is not nil.
func search(n int, calm bool, tamper func(*rules)) (seed uint64, violation string, stats map[string]int) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards next and the results
		next = *first
	)
	stats = map[string]int{}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // worlds are small and short
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				s := next
				next++
				stop := s >= *first+uint64(n) || violation != ""
				mu.Unlock()
				if stop {
					return
				}
				r := newRules()
				if tamper != nil {
					tamper(r)
				}
				w := newWorld(s, r, calm)
				v := w.run(*steps)
				mu.Lock()
				for k, n := range w.stats {
					stats[k] += n
				}
				if v != "" && (violation == "" || s < seed) {
					seed, violation = s, v
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return seed, violation, stats
}

// brief says that there is no time for many seeds.
func brief() bool { return raced || testing.Short() }

// retrace runs a seed again and gives the last part of its trace.
func retrace(seed uint64, calm bool, tamper func(*rules)) string {
	r := newRules()
	if tamper != nil {
		tamper(r)
	}
	w := newWorld(seed, r, calm)
	w.tracing = true
	w.run(*steps)
	return strings.Join(w.trace[max(0, len(w.trace)-150):], "\n")
}

// spec: DLV-3, DLV-4, EDGE-5, EDGE-6, EDGE-9, LOG-8, CONN-6
func TestProtocol(t *testing.T) {
	for _, calm := range []bool{false, true} {
		n := *seeds
		if brief() {
			n /= 20
		}
		if calm {
			n /= 5
		}
		seed, violation, stats := search(n, calm, nil)
		if violation != "" {
			t.Fatalf("seed %d, calm %v: %s\n%s", seed, calm, violation, retrace(seed, calm, nil))
		}
		t.Logf("%d seeds, calm %v: %v", n, calm, stats)
		for _, what := range []string{"applied", "tried from a stream", "to sockets", "dropped", "fail", "kill", "answers cut",
			"answers with changes only", "asked below confirmed", "restore", "applied again after two restores"} {
			if stats[what] == 0 && n >= 1000 && !calm {
				t.Errorf("nothing was ever %q: the worlds miss it", what)
			}
		}
	}
}
