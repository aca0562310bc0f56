package system

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const gapApp = `
-- main.lua --
local P = object "P" {
    publishes = { e = "public" },
    say = function(state, n) state:publish("e", n) end,
}
object "F" {
    receives = { ["P:e"] = function(state, event)
        local l = state.store:get("l") or {}
        l[#l + 1] = event.data
        state.store:set("l", l)
    end },
    watch = function(state) state:follow(P("p"), "e") end,
    got = function(state) return state.store:get("l") end,
}
`

// A message that JetStream loses is noticed by the follower at the next event, and comes from the publisher's log; one
// at the end of the log is noticed by the check, without a further publish.
// spec: DLV-12
func TestGap(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gapApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		nc, err := s.Standalone.Connect("saboteur")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		// lose deletes all consumers, so that nothing is delivered, and afterwards a message.
		consumers := func() jetstream.Stream {
			for name := range js.StreamNames(ctx).Name() {
				if !strings.HasPrefix(name, "WEIR_") {
					continue // a bucket
				}
				st, err := js.Stream(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				for c := range st.ConsumerNames(ctx).Name() {
					if err := st.DeleteConsumer(ctx, c); err != nil {
						t.Fatal(err)
					}
				}
				return st
			}
			t.Fatal("there is no stream")
			return nil
		}
		s.MustCall("F/f", "watch")
		s.MustCall("P/p", "say", `1`)
		time.Sleep(3 * time.Second)
		st := consumers()
		s.MustCall("P/p", "say", `2`)
		s.MustCall("P/p", "say", `3`)
		time.Sleep(time.Second)
		if err := st.DeleteMsg(ctx, 2); err != nil {
			t.Fatal(err)
		}
		if got := s.MustCall("F/f", "got"); got != "[1]" {
			t.Fatalf("delivered without a consumer: %s", got)
		}
		time.Sleep(90 * time.Second)
		if got := s.MustCall("F/f", "got"); got != "[1,2,3]" {
			t.Errorf("a gap in the middle: %s", got)
		}
		st = consumers()
		s.MustCall("P/p", "say", `4`)
		time.Sleep(time.Second)
		if err := st.DeleteMsg(ctx, 4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		if got := s.MustCall("F/f", "got"); got != "[1,2,3,4]" {
			t.Errorf("a lost tail: %s", got)
		}
	})
}
