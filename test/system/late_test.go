package system

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/objectid"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const lateApp = `
-- main.lua --
object "A" {
    put = function(state, n) state.store:set("n", n) return n end,
    remind = function(state) state:set_alarm("10s") end,
    reminded = function(state) return state.store:get("reminded") or false end,
    hooks = { alarm = function(state) state.store:set("reminded", true) end },
}
`

// A call whose time ends just as its turn begins, since the disk had to be waited for, ends with a timeout and does no
// harm: the object's alarm rings.
// spec: OBJ-10, ALRM-1
func TestTurnThatComesTooLate(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(lateApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var slow atomic.Bool
		s.Barrier = func(_ objectid.ID, sync func() error) error {
			if slow.Load() {
				time.Sleep(3 * time.Second)
			}
			return sync()
		}
		s.Restart()
		s.MustCall("A/a", "remind")
		slow.Store(true)
		var calls sync.WaitGroup
		for range 128 { // so many may be on their way to the disk
			calls.Go(func() { s.MustCall("A/a", "put", "1") })
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		out, err := s.Client().Call(ctx, wire.CallRequest{To: "A/a", Method: "put", Args: json.RawMessage("[2]")})
		if err == nil || !strings.HasPrefix(err.Error(), "outcome unknown: ") && !strings.HasPrefix(err.Error(), "timeout: ") {
			t.Errorf("the call that came too late: %s %v", out, err)
		}
		calls.Wait()
		slow.Store(false)
		time.Sleep(10 * time.Second)
		if got := s.MustCall("A/a", "reminded"); got != "true" {
			t.Error("the alarm did not ring")
		}
	})
}

// An alarm whose hook sets the next one goes on when that commit could not be made durable: the object is opened anew, and
// what its file says rings.
// spec: ALRM-1, LOG-6
func TestAlarmOutlivesABarrierThatFails(t *testing.T) {
	const app = `
-- main.lua --
object "A" {
    begin = function(state) state:set_alarm("10s") end,
    beats = function(state) return state.store:get("beats") or 0 end,
    hooks = { alarm = function(state)
        state.store:set("beats", (state.store:get("beats") or 0) + 1)
        state:set_alarm("10s")
    end },
}
`
	testkit.Bubble(t, txtar.Parse([]byte(app)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var fail atomic.Bool
		s.Barrier = func(_ objectid.ID, sync func() error) error {
			if fail.CompareAndSwap(true, false) {
				return errors.New("on purpose")
			}
			return sync()
		}
		s.Restart()
		s.MustCall("A/a", "begin")
		fail.Store(true)
		time.Sleep(time.Minute)
		if fail.Load() {
			t.Fatal("nothing failed")
		}
		// Nothing but its alarm wakes it meanwhile.
		if got := s.MustCall("A/a", "beats"); got != "5" && got != "6" {
			t.Errorf("in a minute the alarm rang %s times", got)
		}
	})
}

// An alarm whose hook calls another object is not given up because NATS is away.
// spec: ALRM-2
func TestAlarmOutlivesAnOutage(t *testing.T) {
	const app = `
-- main.lua --
local B = object "B" { hear = function(state) state.store:set("n", (state.store:get("n") or 0) + 1) end,
    heard = function(state) return state.store:get("n") or 0 end }
object "A" {
    begin = function(state) state:set_alarm("10s") end,
    hooks = { alarm = function(state) B("b"):hear() end },
}
`
	testkit.Bubble(t, txtar.Parse([]byte(app)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		s.MustCall("A/a", "begin")
		if err := s.RestartNATS(func(string) error { time.Sleep(10 * time.Minute); return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := s.MustCall("B/b", "heard"); got != "1" {
			t.Errorf("the other object heard of it %s times", got)
		}
	})
}
