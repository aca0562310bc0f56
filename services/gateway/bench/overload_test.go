package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/pkg/wire"
	"weir/services/standalone"
	"weir/test/clients"
)

var full = flag.Bool("full", false, "overload with 10,000 sockets and 100,000 calls, and not a twentieth")

// scale gives the size of an overload.
func scale(n int) int {
	if *full {
		return n
	}
	return n / 20
}

// maxDeaf is what a socket that never reads may cost the gateway: its queue holds what others' queues hold too, and
// ends with it.
const maxDeaf = 300 << 10

// A twentieth of the sockets never read. They are closed when their queues are full, the others get every event, and
// memory stays within its bound.
// spec: CONN-8, CONN-7
func TestDeafSockets(t *testing.T) {
	s, addr := start(t)
	hearing, deaf := scale(9500), scale(500)
	c := clients.Open(t, addr, "/ws", hearing, "")
	clients.OpenDeaf(t, addr, "/loaded", deaf)
	c.Settle()
	if n := watchers(t, s); n != hearing+deaf {
		t.Fatalf("%d sockets follow, and not %d", n, hearing+deaf)
	}
	before := resident(t)
	most, sent, deadline := int64(0), 0, time.Now().Add(3*time.Minute)
	for ; watchers(t, s) > hearing; sent += 25 {
		if time.Now().After(deadline) {
			t.Fatalf("after %d events %d sockets are still there", sent, watchers(t, s))
		}
		for range 20 {
			load(t, s)
		}
		c.Pace(5, hearing, func(n int) { say(t, s, n) })
		most = max(most, resident(t)-before)
	}
	t.Logf("%d sockets, %d of them deaf: these were closed after %d events, the others got all; %d KB for each deaf one at most",
		hearing+deaf, deaf, sent, most>>10/int64(deaf))
	if most > int64(deaf)*maxDeaf+256<<20 {
		t.Errorf("the process grew by %d MB", most>>20)
	}
}

// A call that comes while an object has all the calls it takes is told so in its own time, and none is lost in silence.
// spec: OBJ-10
func TestFloodOfCalls(t *testing.T) {
	s, _ := start(t)
	calls := scale(100_000)
	before := resident(t)
	var mu sync.Mutex
	outcomes := map[string]int{}
	var wg sync.WaitGroup
	for n := range calls {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := s.Client().Call(ctx, wire.CallRequest{To: "P/p", Method: "say", Args: json.RawMessage(fmt.Sprintf("[%d]", n))})
			outcome := "done"
			if err != nil {
				outcome = string(wire.AsError(err).Code)
			}
			mu.Lock()
			outcomes[outcome]++
			mu.Unlock()
		})
	}
	wg.Wait()
	grown := resident(t) - before
	total := 0
	for outcome, n := range outcomes {
		total += n
		if !slices.Contains([]string{"done", string(wire.Overloaded), string(wire.Timeout), string(wire.OutcomeUnknown)}, outcome) {
			t.Errorf("%d calls ended with %q", n, outcome)
		}
	}
	t.Logf("%d calls at once: %v; the process grew by %d MB", calls, outcomes, grown>>20)
	if total != calls || outcomes["done"] == 0 {
		t.Errorf("%d of %d calls ended", total, calls)
	}
	if grown > 1<<30 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	say(t, s, 1) // and on it goes
}

func watchers(t testing.TB, s *standalone.Standalone) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	data, err := s.Client().Call(ctx, wire.CallRequest{To: "P/p", Method: "watchers"})
	if err == nil {
		err = json.Unmarshal(data, &[]any{&n})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// load publishes an event of 32 KB that only deaf sockets follow.
func load(t testing.TB, s *standalone.Standalone) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := s.Client().Call(ctx, wire.CallRequest{To: "P/p", Method: "load"}); err != nil {
		t.Fatal(err)
	}
}
