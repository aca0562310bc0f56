package system

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/gateway/gatewayd"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const sliceApp = `
-- main.lua --
local User = objects "User"
local P = object "P" {
    publishes = { a = "public", b = "public" },
    say = function(state, topic, n) state:publish(topic, { n = n }) end,
}
object "User" {}
object "Sink" { watch = function(state) state:follow(P("p"), "a") end }
local Ws = connection "Ws" {
    open = function(conn)
        conn:follow(P("p"), conn.state.topic, conn.state.n and { n = conn.state.n })
        conn:send("open")
    end,
    event = "forward",
}
on "fetch" (function(request)
    return request:upgrade(Ws, { topic = request.query.topic, n = tonumber(request.query.n) }, User("u"))
end)
`

// A publish costs one message per gateway, however many sockets it has, whether an object follows too or not; the
// gateway slices it by topic and filter.
// spec: CONN-7
func TestOneMessagePerGateway(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(sliceApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		nc, err := s.Standalone.Connect("gateway 2")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		g, err := gatewayd.Open(context.Background(), gatewayd.Config{App: s.App, NATS: nc, Log: s.Log})
		if err != nil {
			t.Fatal(err)
		}
		l := testkit.NewPipe()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { _ = g.Run(ctx, l); close(done) }()
		defer func() { cancel(); <-done }()
		var sockets []*testkit.Socket
		for i := range 40 {
			path := []string{"/ws?topic=a", "/ws?topic=b", "/ws?topic=a&n=1", "/ws?topic=a&n=2"}[i%4]
			c, err := testkit.DialSocket(l, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if frame, err := c.Next(); err != nil || frame != `"open"` {
				t.Fatalf("%s %v", frame, err)
			}
			sockets = append(sockets, c)
		}
		for round, durable := range []bool{false, true} {
			if durable {
				s.MustCall("Sink/s", "watch")
				s.MustCall("P/p", "say", `"b"`, `0`) // the stream and its consumer stand
				time.Sleep(time.Second)
				for i := 1; i < 40; i += 4 {
					_, _ = sockets[i].Next()
				}
			}
			synctest.Wait()
			before := nc.Stats().InMsgs
			s.MustCall("P/p", "say", `"a"`, `2`)
			time.Sleep(time.Second)
			synctest.Wait()
			if n := nc.Stats().InMsgs - before; n != 1 {
				t.Errorf("round %d: %d messages came to the gateway for one event and 20 interested sockets", round, n)
			}
			for i, c := range sockets {
				frame, err := c.Next()
				want := `{"type":"event","topic":"a","from":{"id":"P/p","class":"P","name":"p"},"data":{"n":2}}`
				if wanted := i%4 == 0 || i%4 == 3; wanted != (err == nil) || wanted && frame != want {
					t.Errorf("round %d: socket %d: %s %v", round, i, frame, err)
				}
			}
		}
	})
}
