package system

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/tools/txtar"

	"weir/pkg/wire"
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

// The stream's sequence is the log's: if it is not, because somebody published into the stream, the publisher notices
// at its next event and makes a new one.
// spec: DLV-12
func TestStreamSequence(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gapApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		nc, err := s.Standalone.Connect("operator")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		s.MustCall("F/f", "watch")
		s.MustCall("P/p", "say", `1`)
		time.Sleep(time.Second)
		for name := range js.StreamNames(ctx).Name() {
			if st, err := js.Stream(ctx, name); err == nil && strings.HasPrefix(name, "WEIR_") {
				subject := strings.TrimSuffix(st.CachedInfo().Config.Subjects[0], "*") + "e"
				if _, err := js.Publish(ctx, subject, []byte("no event of ours")); err != nil {
					t.Fatal(err)
				}
			}
		}
		for n := range 5 {
			s.MustCall("P/p", "say", strconv.Itoa(n+2))
		}
		time.Sleep(500 * time.Millisecond)
		messages := 0
		for name := range js.StreamNames(ctx).Name() {
			if !strings.HasPrefix(name, "WEIR_") {
				continue
			}
			st, err := js.Stream(ctx, name)
			if err != nil {
				continue // it went meanwhile
			}
			state := st.CachedInfo().State
			for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
				m, err := st.GetMsg(ctx, seq)
				if err != nil {
					continue
				}
				e, err := wire.GetEvent(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
				if err != nil {
					continue // the operator's
				}
				if e.Seq != seq {
					t.Errorf("%s has event %d as its message %d: %v", name, e.Seq, seq, err)
				}
				messages++
			}
		}
		if messages == 0 {
			t.Error("no stream has a message")
		}
		time.Sleep(2 * time.Minute)
		if got := s.MustCall("F/f", "got"); got != "[1,2,3,4,5,6]" {
			t.Errorf("the follower has %s", got)
		}
	})
}
