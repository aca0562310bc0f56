package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/settings"
	"weir/pkg/wire"
	"weir/services/standalone"
	"weir/test/clients"
	"weir/test/testkit"
)

// The clients run in a process of their own.
func TestMain(m *testing.M) { clients.Main(m) }

const benchApp = `
-- main.lua --
local User = objects "User"
local P = object "P" {
    publishes = { e = "public", big = "public" },
    watchers = function(state) return #state:followers("e") end,
    load = function(state) state:publish("big", ("x"):rep(32768)) end,
    say = function(state, n) state:publish("e", { n = n, text = "#an event of a usual size, some hundred bytes" }) end,
}
object "User" {}
local Ws = connection "Ws" {
    open = function(conn) conn:follow(P("p"), "e") conn:send("open") end,
    event = "forward",
}
local Loaded = connection "Loaded" { open = function(conn) conn:follow(P("p"), "e") conn:follow(P("p"), "big") end, event = "forward" }
local Idle = connection "Idle" { event = "forward" }
on "fetch" (function(request)
    return request:upgrade(request.path == "/idle" and Idle or request.path == "/loaded" and Loaded or Ws, nil, User("u"))
end)
`

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func start(b testing.TB) (*standalone.Standalone, string) {
	settings.RaiseDescriptors(0)
	dir := b.TempDir()
	testkit.WriteApp(b, dir, txtar.Parse([]byte(benchApp)))
	a, err := app.Load(dir, app.Options{Name: "bench", Library: lualib.Open(quiet)})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := standalone.Open(ctx, standalone.Config{App: a, Data: filepath.Join(dir, "data"), Log: quiet, Listen: l})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	b.Cleanup(func() { cancel(); wg.Wait(); _ = s.Close() })
	return s, l.Addr().String()
}

func say(b testing.TB, s *standalone.Standalone, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := s.Client().Call(ctx, wire.CallRequest{To: "P/p", Method: "say", Args: json.RawMessage(fmt.Sprintf("[%d]", n))}); err != nil {
		b.Fatal(err)
	}
}

const sockets = 2000

// pace publishes b.N events and reports frames/s.
func pace(b *testing.B, c *clients.Clients, publish func(n int)) {
	c.Settle()
	b.ResetTimer()
	c.Pace(b.N, sockets, publish)
	b.ReportMetric(float64(b.N*sockets)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkSockets: frames/s from one publisher to 2,000 sockets of one gateway with forward.
func BenchmarkSockets(b *testing.B) {
	s, addr := start(b)
	var calls sync.WaitGroup
	pace(b, clients.Open(b, addr, "/ws", sockets, ""), func(n int) { calls.Go(func() { say(b, s, n) }) })
	calls.Wait()
}

// BenchmarkSocketsLimit: a loop that writes one prepared message to 2,000 gorilla connections.
func BenchmarkSocketsLimit(b *testing.B) {
	conns := make(chan *websocket.Conn, sockets)
	srv := bare(conns)
	defer srv.Close()
	c := clients.Open(b, srv.Listener.Addr().String(), "/", sockets, "")
	all := make([]*websocket.Conn, sockets)
	for i := range all {
		all[i] = <-conns
	}
	pace(b, c, func(n int) {
		text := fmt.Sprintf(`{"type":"event","topic":"e","from":{"id":"P/p","class":"P","name":"p"},"data":{"n":%d,"text":"#an event of a usual size, some hundred bytes"}}`, n)
		m, err := websocket.NewPreparedMessage(websocket.TextMessage, []byte(text))
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range all {
			if err := c.WritePreparedMessage(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// bare is a server of gorilla connections that do nothing but wait for their end.
func bare(conns chan<- *websocket.Conn) *httptest.Server {
	settings.RaiseDescriptors(0)
	up := websocket.Upgrader{WriteBufferPool: &sync.Pool{}}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err == nil {
			conns <- c
			_, _, _ = c.ReadMessage()
		}
	}))
}

// BenchmarkLatency: the time from a call that publishes to the browser's frame, at 1,000 events/s.
func BenchmarkLatency(b *testing.B) {
	s, addr := start(b)
	ws, resp, err := websocket.DefaultDialer.Dial("ws://"+addr+"/ws", nil)
	if err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
	defer ws.Close()
	if _, _, err := ws.ReadMessage(); err != nil {
		b.Fatal(err)
	}
	began := make([]time.Time, b.N)
	took := make([]time.Duration, 0, b.N)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for len(took) < b.N {
			var f struct{ Data struct{ N int } }
			if err := ws.ReadJSON(&f); err != nil {
				b.Error(err)
				return
			}
			took = append(took, time.Since(began[f.Data.N]))
		}
	}()
	b.ResetTimer()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var calls sync.WaitGroup
	for n := range b.N {
		<-tick.C
		began[n] = time.Now()
		calls.Go(func() { say(b, s, n) })
	}
	calls.Wait()
	<-done
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(0.999), "p99.9-ms")
}

// BenchmarkIdleSockets: memory of an idle socket that follows nothing, at 10,000.
func BenchmarkIdleSockets(b *testing.B) {
	_, addr := start(b)
	idle(b, addr, "/idle")
}

// BenchmarkIdleSocketsFollowing: the same where each follows a publisher.
func BenchmarkIdleSocketsFollowing(b *testing.B) {
	_, addr := start(b)
	idle(b, addr, "/ws")
}

// BenchmarkIdleSocketsLimit: memory of a gorilla connection in whose handler a goroutine waits.
func BenchmarkIdleSocketsLimit(b *testing.B) {
	srv := bare(make(chan *websocket.Conn, 10_000))
	defer srv.Close()
	idle(b, srv.Listener.Addr().String(), "/")
}

func idle(b *testing.B, addr, path string) {
	const n = 10_000
	before := testkit.Settled(b)
	clients.Open(b, addr, path, n, "").Settle()
	each := float64(testkit.Settled(b)-before) / n
	for b.Loop() {
	}
	b.ReportMetric(each, "B/socket")
}
