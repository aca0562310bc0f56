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
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/settings"
	"weir/pkg/wire"
	"weir/services/standalone"
	"weir/test/testkit"
)

const benchApp = `
-- main.lua --
local User = objects "User"
local P = object "P" {
    publishes = { e = "public" },
    say = function(state, n) state:publish("e", { n = n, text = "an event of a usual size, some hundred bytes" }) end,
}
object "User" {}
local Ws = connection "Ws" {
    open = function(conn) conn:follow(P("p"), "e") conn:send("open") end,
    event = "forward",
}
local Idle = connection "Idle" { event = "forward" }
on "fetch" (function(request)
    return request:upgrade(request.path == "/idle" and Idle or Ws, nil, User("u"))
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

// readers opens sockets and counts the bytes that each gets, as cheaply as can be: the reading is not what is measured.
func readers(b testing.TB, url string, n int) *atomic.Int64 {
	var total atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ws, resp, err := websocket.DefaultDialer.Dial(url, nil)
			if err != nil {
				b.Error(err)
				return
			}
			resp.Body.Close()
			b.Cleanup(func() { ws.Close() })
			go func() {
				buf := make([]byte, 16<<10)
				for {
					n, err := ws.NetConn().Read(buf)
					total.Add(int64(n))
					if err != nil {
						return
					}
				}
			}()
		})
	}
	wg.Wait()
	return &total
}

const sockets = 2000

// frame is the size of one event's frame on the wire: a header of 4 bytes and the envelope.
func frame(n int) int64 {
	return int64(4 + len(fmt.Sprintf(`{"type":"event","topic":"e","from":{"id":"P/p","class":"P","name":"p"},"data":{"n":%d,"text":"an event of a usual size, some hundred bytes"}}`, n)))
}

func await(total *atomic.Int64, want int64) {
	for total.Load() < want {
		<-time.After(200 * time.Microsecond)
	}
}

// BenchmarkSockets: frames/s from one publisher to 2,000 sockets of one gateway with forward, paced so that no queue
// overflows: 32 events are on their way at most.
func BenchmarkSockets(b *testing.B) {
	s, addr := start(b)
	total := readers(b, "ws://"+addr+"/ws", sockets)
	want := int64(sockets) * 8 // "open"
	await(total, want)
	b.ResetTimer()
	for n := range b.N {
		say(b, s, 100_000+n)
		want += sockets * frame(100_000+n)
		await(total, want-32*sockets*frame(100_000))
	}
	await(total, want)
	b.ReportMetric(float64(b.N*sockets)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkSocketsLimit: a loop that writes one prepared message to 2,000 gorilla connections.
func BenchmarkSocketsLimit(b *testing.B) {
	settings.RaiseDescriptors(0)
	var mu sync.Mutex
	var conns []*websocket.Conn
	up := websocket.Upgrader{WriteBufferPool: &sync.Pool{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		mu.Lock()
		conns = append(conns, c)
		mu.Unlock()
	}))
	defer srv.Close()
	total := readers(b, "ws"+strings.TrimPrefix(srv.URL, "http"), sockets)
	for n := 0; n < sockets; {
		mu.Lock()
		n = len(conns)
		mu.Unlock()
	}
	data := make([]byte, frame(100_000)-4)
	for i := range data {
		data[i] = 'x'
	}
	b.ResetTimer()
	for range b.N {
		m, err := websocket.NewPreparedMessage(websocket.TextMessage, data)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range conns {
			if err := c.WritePreparedMessage(m); err != nil {
				b.Fatal(err)
			}
		}
	}
	await(total, int64(b.N)*sockets*frame(100_000))
	b.ReportMetric(float64(b.N*sockets)/b.Elapsed().Seconds(), "frames/s")
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

// BenchmarkIdleSockets: memory of an idle socket at 4,000, its client's part of the process taken off: that is measured
// with a bare gorilla server first.
func BenchmarkIdleSockets(b *testing.B) {
	const n = 4000 // with its client and the bare ones four descriptors each
	_, addr := start(b)
	before := resident(b)
	readers(b, "ws://"+addr+"/idle", n)
	both := resident(b) - before
	up := websocket.Upgrader{WriteBufferPool: &sync.Pool{}, ReadBufferSize: 2048}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err == nil {
			go func() { _, _, _ = c.ReadMessage() }()
		}
	}))
	defer srv.Close()
	before = resident(b)
	readers(b, "ws"+strings.TrimPrefix(srv.URL, "http"), n)
	bare := resident(b) - before
	for b.Loop() {
	}
	b.ReportMetric(float64(both)/n, "B/socket-and-client")
	b.ReportMetric(float64(bare)/n, "B/bare-socket-and-client")
}

func resident(b testing.TB) int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
