package system

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/objectid"
	"weir/services/gateway/gatewayd"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const gatewayApp = `
-- main.lua --
local User = objects "User"
local P = object "P" {
    publishes = { e = "public" },
    say = function(state, d) state:publish("e", d) end,
    watchers = function(state) return #state:followers() end,
    write = function(state) state.store:set("n", 1) end,
}
object "User" {}
local Ws = connection "Ws" {
    open = function(conn) conn:follow(P("p"), "e") conn:send("open") end,
    event = "forward",
}
on "fetch" (function(request)
    if request.upgrade then return request:upgrade(Ws, nil, User("u")) end
    if request.path == "/wait" then P("stuck" .. (request.query.n or "")):write() end
    return { body = tostring(#request.body) .. " " .. request.remote }
end)
`

// A browser's page connects from the same host or an allowed origin only; without an Origin it is no browser's page.
// spec: CONN-14
func TestOrigins(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for origin, want := range map[string]bool{"": true, "http://app.test": true, "https://APP.test": true, "http://evil.test": false, "http://app.test.evil.test": false,
			"null": false, "http://app.test:81": false} {
			header := http.Header{}
			if origin != "" {
				header.Set("Origin", origin)
			}
			c, err := testkit.DialSocket(s.Listener(), "/ws", header)
			if (err == nil) != want {
				t.Errorf("origin %q: %v", origin, err)
			}
			if err == nil {
				c.Close()
			}
		}
	})
}

// What is too large, too slow or too much is refused with a status of its own.
// spec: HTTP-3
func TestHTTPLimits(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{Mailbox: 1000}, func(t *testing.T, s *testkit.System) {
		gate := make(chan struct{})
		var shut atomic.Bool
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if strings.HasPrefix(id.Name, "stuck") && shut.Load() {
				<-gate
			}
			return sync()
		}
		s.Restart()
		if status, _, body, err := s.HTTP("POST", "/", strings.Repeat("x", 10<<20)); err != nil || status != 200 || !strings.HasPrefix(body, "10485760 ") {
			t.Errorf("10 MiB: %d %.40s %v", status, body, err)
		}
		if status, _, body, err := s.HTTP("POST", "/", strings.Repeat("x", 10<<20+1)); err == nil && status != 413 {
			t.Errorf("more than 10 MiB: %d %.40s", status, body)
		}
		shut.Store(true)
		var wg sync.WaitGroup
		for i := range 1024 { // all that a gateway has room for: one object alone takes half of it at most
			wg.Go(func() {
				start := time.Now()
				status, _, _, err := s.HTTP("GET", fmt.Sprintf("/wait?n=%d", i%4), "")
				if err != nil || status != 504 || time.Since(start) < 29*time.Second {
					t.Errorf("a request that takes its whole time: %d %v after %v", status, err, time.Since(start))
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		status, header, _, err := s.HTTP("GET", "/", "")
		if took := time.Since(start).Round(time.Second); err != nil || status != 503 || header.Get("Retry-After") != "1" || took != 5*time.Second {
			t.Errorf("no room: %d %v %v after %v", status, header, err, took)
		}
		wg.Wait()
		shut.Store(false)
		close(gate)
		if status, _, _, err := s.HTTP("GET", "/", ""); err != nil || status != 200 {
			t.Errorf("afterwards: %d %v", status, err)
		}
	})
}

// A request's head has 64 KiB, and the server's own 4 KiB.
// spec: HTTP-3
func TestLargestHead(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for n, want := range map[int]string{64 << 10: "200", 68 << 10: "431"} {
			head := "GET / HTTP/1.1\r\nHost: app.test\r\nX-A: " + strings.Repeat("x", n) + "\r\n\r\n"
			if got := exchange(t, s.Listener(), []string{"GET"}, head); len(got) != 1 || !strings.HasPrefix(got[0], want) {
				t.Errorf("a head with %d bytes of a value: %q", n, got)
			}
		}
	})
}

// A peer that is silent for a minute is closed, its edges removed.
// spec: CONN-13
func TestSilentPeer(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		alive, err := s.Connect("/ws")
		if err != nil {
			t.Fatal(err)
		}
		defer alive.Close()
		silent, err := testkit.DialSilent(s.Listener(), "/ws")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		time.Sleep(time.Second)
		if got := s.MustCall("P/p", "watchers"); got != "2" {
			t.Fatalf("%s edges at first", got)
		}
		time.Sleep(55 * time.Second)
		if got := s.MustCall("P/p", "watchers"); got != "2" {
			t.Errorf("%s edges after 56 s", got)
		}
		time.Sleep(20 * time.Second)
		if got := s.MustCall("P/p", "watchers"); got != "1" {
			t.Errorf("%s edges after 76 s", got)
		}
	})
}

// The edges of a gateway that died are not counted as followers, and are pruned.
// spec: CONN-13
func TestGhosts(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		nc, err := s.Standalone.Connect("gateway 2")
		if err != nil {
			t.Fatal(err)
		}
		g, err := gatewayd.Open(context.Background(), gatewayd.Config{App: s.App, NATS: nc, Log: s.Log})
		if err != nil {
			t.Fatal(err)
		}
		l := testkit.NewPipe()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { _ = g.Run(ctx, l); close(done) }()
		a, err := testkit.DialSocket(l, "/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Connect("/ws")
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		time.Sleep(time.Minute)
		if got := s.MustCall("P/p", "watchers"); got != "2" {
			t.Fatalf("%s edges at first", got)
		}
		nc.Close() // as if it had died
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := s.MustCall("P/p", "watchers"); got != "1" {
			t.Errorf("%s edges after its death", got)
		}
		time.Sleep(2 * time.Minute)
		if got := s.Edges("P/p"); len(got.Edges) != 1 {
			t.Errorf("not pruned: %+v", got.Edges)
		}
		s.MustCall("P/p", "say", `1`)
		if frame, err := b.Next(); err != nil || frame != `"open"` {
			t.Errorf("%s %v", frame, err)
		}
		if frame, err := b.Next(); err != nil || !strings.Contains(frame, `"data":1`) {
			t.Errorf("the living gateway's socket: %s %v", frame, err)
		}
		a.Close()
		cancel()
		<-done
	})
}

// Gateways that a host does not hear because NATS is away are not taken for dead: their sockets go on as they were.
// spec: CONN-13
func TestNATSAwayMakesNoGhosts(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		b, err := s.Connect("/ws")
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if frame, err := b.Next(); err != nil || frame != `"open"` {
			t.Fatalf("%s %v", frame, err)
		}
		time.Sleep(time.Minute)
		if err := s.RestartNATS(func(string) error { time.Sleep(3 * time.Minute); return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		s.MustCall("P/p", "say", `1`)
		if frame, err := b.Next(); err != nil || !strings.Contains(frame, `"data":1`) {
			t.Errorf("after three minutes without NATS: %s %v", frame, err)
		}
	})
}

// A client's address is the proxy's word only if the proxy is trusted.
// spec: HTTP-1
func TestRemote(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(gatewayApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for _, c := range []struct {
			proxies   []string
			forwarded string
			want      string
		}{
			{nil, "9.9.9.9", "127.0.0.1"},
			{[]string{"127.0.0.0/8"}, "9.9.9.9", "9.9.9.9"},
			{[]string{"127.0.0.1"}, "6.6.6.6, 9.9.9.9", "9.9.9.9"},
			{[]string{"127.0.0.1", "9.9.9.0/24"}, "6.6.6.6, 9.9.9.9", "6.6.6.6"},
			{[]string{"127.0.0.1"}, "nonsense", "127.0.0.1"},
			{[]string{"127.0.0.1"}, "", "127.0.0.1"},
		} {
			nc, err := s.Standalone.Connect("gateway 2")
			if err != nil {
				t.Fatal(err)
			}
			g, err := gatewayd.Open(context.Background(), gatewayd.Config{App: s.App, NATS: nc, Log: s.Log, Proxies: c.proxies})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequest(http.MethodGet, "http://app.test/", nil)
			r.RemoteAddr, r.Body = "127.0.0.1:1234", http.NoBody
			if c.forwarded != "" {
				r.Header.Set("X-Forwarded-For", c.forwarded)
			}
			w := &recorder{header: http.Header{}}
			g.ServeHTTP(w, r)
			if got := w.String(); got != "0 "+c.want {
				t.Errorf("%v %q: %s, want %s", c.proxies, c.forwarded, got, c.want)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			nc.Close()
		}
		if _, err := gatewayd.Open(context.Background(), gatewayd.Config{App: s.App, Log: s.Log, Proxies: []string{"nonsense"}}); err == nil {
			t.Error("a proxy that is no address was accepted")
		}
	})
}

// recorder keeps an answer.
type recorder struct {
	strings.Builder
	header http.Header
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return r.Builder.Write(b) }
func (r *recorder) WriteHeader(int)             {}
