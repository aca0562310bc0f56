package system

import (
	"context"
	"encoding/json"
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
