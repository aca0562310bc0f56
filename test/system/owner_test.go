package system

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/tools/txtar"

	"weir/pkg/bus"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

// Many calls at once that do not know the host yet find it with one question.
func TestOwnerIsAskedForOnce(t *testing.T) {
	const app = "-- main.lua --\nobject \"A\" { echo = function(_, n) return n end }\n"
	testkit.Bubble(t, txtar.Parse([]byte(app)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		client := bus.NewClient(s.Client().NATS, "app")
		var asked atomic.Int64
		sub, err := client.NATS.Subscribe(client.Subjects.Owner(), func(*nats.Msg) { asked.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Unsubscribe()
		if err := client.NATS.Flush(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var calls sync.WaitGroup
		for range 500 {
			calls.Go(func() {
				out, err := client.Call(ctx, wire.CallRequest{To: "A/a", Method: "echo", Args: json.RawMessage("[1]")})
				if err != nil || string(out) != "[1]" {
					t.Errorf("%s %v", out, err)
				}
			})
		}
		calls.Wait()
		synctest.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("500 calls asked %d times for the host", n)
		}
	})
}
