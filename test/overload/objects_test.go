//go:build !race

package overload

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pkg/settings"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/services/standalone"
	"weir/test/clients"
	"weir/test/testkit"
)

// A call that comes while an object has all the calls it takes is told so in its own time, and none is lost in silence.
// spec: OBJ-10
func TestFloodOfCalls(t *testing.T) {
	y := start(t, settings.Clients{})
	unloaded := y.quiet()
	calls := scale(100_000)
	before := testkit.Settled(t)
	var ends clients.Outcomes
	loaded := y.others("flooding calls", func() {
		clients.FloodCalls(t, y.run.NATS, y.run.Token, y.run.App, "P/p", "say", calls).Wait(&ends)
	})
	grown := testkit.Settled(t) - before
	total := 0
	for outcome, n := range ends {
		total += n
		if !slices.Contains([]string{"done", string(wire.Overloaded), string(wire.Timeout), string(wire.OutcomeUnknown)}, outcome) {
			t.Errorf("%d calls ended with %q", n, outcome)
		}
	}
	t.Logf("%d calls at once: %v; the process grew by %d MB", calls, ends, grown>>20)
	y.beside("flooding calls", unloaded, loaded)
	if total != calls || ends["done"] == 0 {
		t.Errorf("%d of %d calls ended", total, calls)
	}
	if grown > 1<<30 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	y.must("P/p", "say", nil, 1) // and on it goes
}

// A publisher at full speed has a follower that is stuck in its handler and one that is not. The quick one gets everything;
// what the stuck one lacks is held until the log is full, which the publisher is told; then the stuck one gets all of it,
// in order, once. The short form has a log of 2 MiB.
// spec: DLV-9, LOG-8
func TestStuckFollower(t *testing.T) {
	var limits hostd.Limits
	if !*full {
		limits.Log = 2 << 20
	}
	y := startWith(t, standalone.Config{Limits: limits})
	for _, sink := range []string{"quick", "stuck"} {
		y.must("Sink/"+sink, "watch", nil)
	}
	y.must("Sink/stuck", "slow", nil, true)
	unloaded := y.quiet()
	before := testkit.Settled(t)
	published, refused := 0, ""
	const each = 500
	loaded := y.others("a stuck follower", func() {
		for published < scale(200_000) && refused == "" {
			if err := y.call("P/p", "many", nil, published+1, published+each); err != nil {
				refused = err.Error()
				continue
			}
			published += each
		}
		y.reaches("quick", published)
	})
	grown := testkit.Settled(t) - before
	var had int
	y.must("Sink/stuck", "last", &had)
	t.Logf("%d events published, of which the stuck follower had %d: %d held for it; the publisher was then told: %q; the process grew by %d MB",
		published, had, published-had, refused, grown>>20)
	y.beside("a stuck follower", unloaded, loaded)
	if !strings.HasPrefix(refused, "log full: ") {
		t.Errorf("the publisher of so many events was told %q", refused)
	}
	if grown > 1<<30 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	y.must("Sink/stuck", "slow", nil, false)
	began := time.Now()
	y.reaches("stuck", published)
	t.Logf("they reached it within %v, in order, once", time.Since(began).Round(time.Second))
	err := y.call("P/p", "many", nil, published+1, published+each)
	for patience := time.Now().Add(time.Minute); err != nil && strings.HasPrefix(err.Error(), "log full: ") && time.Now().Before(patience); {
		<-time.After(100 * time.Millisecond)
		err = y.call("P/p", "many", nil, published+1, published+each)
	}
	if err != nil {
		t.Fatalf("a minute after the stuck follower had all: %v", err)
	}
	y.reaches("stuck", published+each)
}

// reaches waits until a sink has everything up to n.
func (y *system) reaches(sink string, n int) {
	y.t.Helper()
	for patience := time.Now().Add(5 * time.Minute); ; {
		var last int
		y.must("Sink/"+sink, "last", &last)
		if last == n {
			return
		}
		if time.Now().After(patience) {
			y.t.Fatalf("Sink/%s has %d of %d events", sink, last, n)
		}
		<-time.After(20 * time.Millisecond)
	}
}

var (
	correlation = regexp.MustCompile(`\s*\([0-9a-f]{16}\)$`)
	// refusal is how each of the evil ends: at the gateway, or in an object, which tells the gateway.
	refusal = regexp.MustCompile(`^(500 Internal Server Error 500 the app failed: |200 OK [a-z]+: )(budget exceeded: |memory limit: |main\.lua:\d+: stack overflow)` +
		`|^504 Gateway Timeout 504 the app did not answer in time: timeout: |^200 OK [a-z]+: timeout: |^200 OK blob: bad sql: `)
)

// App code that loops, recurses, allocates, builds strings of a gigabyte, matches patterns from hell or joins everything
// with everything ends with a reason, in objects and in gateways, while others go on. The failures are shown to clients,
// so that one that was meant is told from a broken app.
// spec: OBJ-11, BOX-3
func TestEvilApps(t *testing.T) {
	y := startWith(t, standalone.Config{Explain: true})
	unloaded := y.quiet()
	var names []string
	resp, err := http.Get("http://" + y.addr + "/names")
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(resp.Body).Decode(&names)
	_ = resp.Body.Close()
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	before := testkit.Settled(t)
	ends := clients.Outcomes{}
	var mu sync.Mutex
	loaded := y.others("evil apps", func() {
		ctx, cancel := context.WithTimeout(context.Background(), scaleTime())
		defer cancel()
		work := make(chan string)
		var wg sync.WaitGroup
		for range 8 { // at a time
			wg.Go(func() {
				for path := range work {
					resp, err := http.Get("http://" + y.addr + path)
					if err != nil {
						t.Error(err)
						continue
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					ends[resp.Status+" "+strings.TrimSpace(string(body))]++
					mu.Unlock()
				}
			})
		}
		for round := 0; round == 0 || ctx.Err() == nil; round++ {
			for _, how := range names {
				if how == "cross" && !*full { // it takes its whole ten seconds
					continue
				}
				work <- "/object?how=" + how + "&n=" + how
				if how != "cross" && how != "blob" {
					work <- "/gateway?how=" + how
				}
			}
		}
		close(work)
		wg.Wait()
	})
	grown := testkit.Settled(t) - before
	refused := clients.Outcomes{} // the first line of each, without correlation ids
	for end, n := range ends {
		if !refusal.MatchString(end) {
			t.Errorf("%d times: %s", n, end)
		}
		line, _, _ := strings.Cut(end, "\n")
		refused[correlation.ReplaceAllString(line, "")] += n
	}
	for end, n := range refused {
		t.Logf("%4d times %.100s", n, end)
	}
	t.Logf("the process grew by %d MB", grown>>20)
	y.beside("evil apps", unloaded, loaded)
	if grown > 256<<20 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
}
