package faults

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

// TestTail loses the newest events, which nobody has had yet, and publishes nothing afterwards: within 90 seconds the
// follower has them. Time is virtual.
// spec: DLV-11, DLV-12, LOG-8
func TestTail(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, s *testkit.System, js jetstream.JetStream)
	}{
		{"every consumer", func(*testing.T, *testkit.System, jetstream.JetStream) {}},
		{"the newest message", func(t *testing.T, _ *testkit.System, js jetstream.JetStream) {
			each(t, js, func(s jetstream.Stream) error { return s.DeleteMsg(t.Context(), s.CachedInfo().State.LastSeq) })
		}},
		{"all messages", func(t *testing.T, _ *testkit.System, js jetstream.JetStream) {
			each(t, js, func(s jetstream.Stream) error { return s.Purge(t.Context()) })
		}},
		{"the stream", func(t *testing.T, _ *testkit.System, js jetstream.JetStream) {
			each(t, js, func(s jetstream.Stream) error { return js.DeleteStream(t.Context(), s.CachedInfo().Config.Name) })
		}},
		{"the memory of the message server", func(t *testing.T, s *testkit.System, _ jetstream.JetStream) {
			if err := s.RestartNATS(nil); err != nil {
				t.Fatal(err)
			}
		}},
		{"the store of the message server", func(t *testing.T, s *testkit.System, _ jetstream.JetStream) {
			if err := s.RestartNATS(os.RemoveAll); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			// A timer that nats.go pooled in this bubble is fatal outside. Two collections empty every sync.Pool.
			t.Cleanup(testkit.EmptyPools)
			archive, err := txtar.ParseFile("app.txtar")
			if err != nil {
				t.Fatal(err)
			}
			testkit.Bubble(t, archive, hostd.Limits{}, func(t *testing.T, s *testkit.System) {
				nc, err := s.Standalone.Connect("saboteur")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				js, err := jetstream.New(nc)
				if err != nil {
					t.Fatal(err)
				}
				s.MustCall("Sink/k", "watch", `"s0"`)
				s.MustCall("Source/s0", "bump", "1")
				time.Sleep(3 * time.Second)
				noConsumers(t, js)
				s.MustCall("Source/s0", "bump", "2")
				s.MustCall("Source/s0", "bump", "3")
				time.Sleep(time.Second)
				const one, all = `[{"id":1,"key":1}]`, `[{"id":1,"key":1},{"id":2,"key":2},{"id":3,"key":3}]`
				if got := s.MustCall("Sink/k", "seen", `"s0"`, "0"); got != one {
					t.Fatalf("it has %s before the loss", got)
				}
				c.lose(t, s, js)
				time.Sleep(90 * time.Second)
				if got := s.MustCall("Sink/k", "seen", `"s0"`, "0"); got != all {
					t.Errorf("90 s after the loss of %s the follower has %s", c.what, got)
				}
				if e := s.Edges("Source/s0").Edges; len(e) != 1 || e[0].Lag != 0 {
					t.Errorf("the edge afterwards: %+v", e)
				}
				t.Logf("%s lost with the newest two events: the follower has them", c.what)
			})
		})
	}
}
