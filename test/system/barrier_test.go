package system

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/objectid"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const barrierApp = `
-- main.lua --
local Other = objects "Other"
local A = object "A" {
    publishes = { put = "public" },
    put = function(state, n) state.store:set("n", n) state:publish("put", { n = n }) end,
    get = function(state) return state.store:get("n") end,
    fail = function(state) error("saw " .. tostring(state.store:get("n"))) end,
    tell = function(state) Other("o"):hear(state.store:get("n")) end,
    watch = function(state) state:follow(Other("o"), "said") end,
}
object "Other" {
    publishes = { said = "public" },
    hear = function(state, n) state.store:set("heard", n) end,
    heard = function(state) return state.store:get("heard") end,
    edges = function(state) return #state:followers() end,
}
object "Sink" {
    receives = { ["A:put"] = function(state, event) state.store:set("last", event.data.n) end },
    watch = function(state) state:follow(A("a"), "put") end,
    last = function(state) return state.store:get("last") end,
}
connection "Feed" { open = function(conn) conn:follow(A("a"), "put") end, event = "forward" }
on "fetch" (function(request) end)
`

// While a commit is not durable nothing leaves the object that may have seen it: no answer, no read's answer, no
// error, no event, no call or follow of a later call. Then everything does.
// spec: LOG-6
func TestNothingLeavesBeforeTheBarrier(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(barrierApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		gate := make(chan struct{})
		var shut atomic.Bool
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if id.Class == "A" && shut.Load() {
				<-gate
			}
			return sync()
		}
		s.Restart()
		s.MustCall("Sink/s", "watch")
		s.MustCall("Other/o", "hear", `0`)
		s.MustCall("A/a", "put", `1`)
		time.Sleep(time.Second)
		shut.Store(true)

		var answered atomic.Int32
		for _, method := range []string{"put", "get", "fail", "tell", "watch"} {
			go func() {
				if method == "put" {
					s.MustCall("A/a", "put", `2`)
				} else if out, err := s.Call("A/a", method); method == "get" && (err != nil || out[0] != "2") {
					t.Errorf("get: %v %v", out, err)
				}
				answered.Add(1)
			}()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		if n := answered.Load(); n != 0 {
			t.Errorf("%d calls were answered before the barrier", n)
		}
		for _, c := range []struct{ id, method, want string }{{"Sink/s", "last", "1"}, {"Other/o", "heard", "0"}, {"Other/o", "edges", "0"}} {
			if got := s.MustCall(c.id, c.method); got != c.want {
				t.Errorf("%s:%s before the barrier: %s, want %s", c.id, c.method, got, c.want)
			}
		}
		shut.Store(false)
		close(gate)
		time.Sleep(time.Second)
		if n := answered.Load(); n != 5 {
			t.Errorf("%d of 5 calls were answered after the barrier", n)
		}
		for _, c := range []struct{ id, method, want string }{{"Sink/s", "last", "2"}, {"Other/o", "heard", "2"}, {"Other/o", "edges", "1"}} {
			if got := s.MustCall(c.id, c.method); got != c.want {
				t.Errorf("%s:%s after the barrier: %s, want %s", c.id, c.method, got, c.want)
			}
		}
	})
}

// A receipt does not leave before the follower's commit is durable: until then the publisher keeps the event.
// spec: LOG-6, LOG-8
func TestReceiptWaitsForTheBarrier(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(barrierApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		gate := make(chan struct{})
		var shut atomic.Bool
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if id.Class == "Sink" && shut.Load() {
				<-gate
			}
			return sync()
		}
		s.Restart()
		s.MustCall("Sink/s", "watch")
		time.Sleep(time.Second)
		shut.Store(true)
		s.MustCall("A/a", "put", `2`)
		time.Sleep(10 * time.Second)
		if got := s.Edges("A/a"); got.Edges[0].Lag != 1 {
			t.Errorf("confirmed before the barrier: %+v", got.Edges)
		}
		shut.Store(false)
		close(gate)
		time.Sleep(3 * time.Second)
		if got := s.Edges("A/a"); got.Edges[0].Lag != 0 {
			t.Errorf("not confirmed after the barrier: %+v", got.Edges)
		}
	})
}

// A barrier that fails tells the caller that nobody knows, and the object is opened anew.
func TestBarrierFails(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(barrierApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var broken atomic.Bool
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if broken.Load() && id.Class == "A" {
				return errors.New("input/output error")
			}
			return sync()
		}
		s.Restart()
		s.MustCall("A/a", "put", `1`)
		broken.Store(true)
		if _, err := s.Call("A/a", "put", `2`); err == nil || err.Error()[:16] != "outcome unknown:" {
			t.Errorf("got %v", err)
		}
		broken.Store(false)
		if got := s.MustCall("A/a", "get"); got != "1" && got != "2" {
			t.Errorf("after the failure: %s", got)
		}
		s.MustCall("A/a", "put", `3`)
		if got := s.MustCall("A/a", "get"); got != "3" {
			t.Errorf("after the failure: %s", got)
		}
	})
}
