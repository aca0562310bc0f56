package system

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/test/testkit"
)

// A system that is told to stop answers the calls and requests that run, keeps what they wrote, and then is gone.
// spec: OPS-4
func TestStopFinishes(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		open := shut()
		var wg sync.WaitGroup
		wg.Go(func() {
			if status, _, body, err := s.HTTP("GET", "/wait", ""); err != nil || status != 200 || body != "waited" {
				t.Errorf("the request that ran: %d %s %v", status, body, err)
			}
		})
		wg.Go(func() {
			if _, err := s.Call("Stuck/s", "write"); err != nil {
				t.Errorf("the call that ran: %v", err)
			}
		})
		wg.Go(func() {
			if _, err := s.Call("Stuck/s", "read"); err != nil && !strings.HasPrefix(err.Error(), "unavailable") && !strings.HasPrefix(err.Error(), "overloaded") {
				t.Errorf("the call that waited behind it: %v", err)
			}
		})
		time.Sleep(time.Second)
		synctest.Wait()
		wg.Go(s.Restart)
		time.Sleep(2 * time.Second)
		open()
		wg.Wait()
		if status, _, _, err := s.HTTP("GET", "/wait", ""); err != nil || status != 200 {
			t.Errorf("afterwards: %d %v", status, err)
		}
	})
}

// A request that runs for more than five seconds of a stop has no answer; the stop goes on.
// spec: OPS-4
func TestStopCutsRequests(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		open := shut()
		var ended atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			if status, _, body, err := s.HTTP("GET", "/wait", ""); err == nil {
				t.Errorf("%d %s", status, body)
			}
			ended.Store(true)
		})
		time.Sleep(time.Second)
		wg.Go(s.Restart)
		time.Sleep(4900 * time.Millisecond)
		if ended.Load() {
			t.Error("cut off before five seconds")
		}
		time.Sleep(200 * time.Millisecond)
		if !ended.Load() {
			t.Error("not cut off after five seconds")
		}
		open()
		wg.Wait()
	})
}

// A socket whose handler runs at the stop is told to reconnect; the handler ends, and then close runs, once, by shutdown.
// spec: OPS-4, CONN-8, CONN-12, CONN-13
func TestStopFinishesHandlers(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		c := connect(t, s, "/slowframe?user=c")
		wants(t, "at first", c, `"open"`)
		open := shut()
		_ = c.Send("0")
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(s.Restart)
		time.Sleep(2 * time.Second)
		open()
		wg.Wait()
		var err error
		for err == nil {
			_, err = c.Next()
		}
		if !strings.Contains(err.Error(), "close 1012") {
			t.Errorf("%v", err)
		}
		if got := s.MustCall("Log/c", "all"); got != `["shutdown"]` {
			t.Errorf("close handlers: %s", got)
		}
	})
}

// The sockets of a gateway that stops are told to reconnect one after another, not all in one instant; every one is.
// spec: CONN-13
func TestStopIsSpread(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, _ func() func()) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		at := map[time.Time]int{}
		for range 100 {
			c := connect(t, s, "/forward?user=u")
			wants(t, "at first", c, `"open"`)
			wg.Go(func() {
				_, err := c.Next()
				for err != nil && err.Error() == "no frame" {
					_, err = c.Next()
				}
				if err == nil || !strings.Contains(err.Error(), "close 1012") {
					t.Errorf("%v", err)
				}
				mu.Lock()
				at[time.Now()]++
				mu.Unlock()
			})
		}
		s.Restart()
		wg.Wait()
		for when, n := range at {
			if n > 50 {
				t.Errorf("%d of 100 sockets were told at the same instant, %v (%d instants)", n, when, len(at))
			}
		}
	})
}
