package system

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/tools/txtar"

	"weir/pkg/app"
	"weir/pkg/lualib"
	"weir/pkg/wire"
	"weir/services/host/hostd"
	"weir/services/standalone"
	"weir/test/testkit"
)

const realApp = `
-- main.lua --
local Account = objects "Account"
local A = object "A" {
    publishes = { put = "public" },
    put = function(state, n) state:publish("put", { n = n }) return n end,
    forever = function(state)
        state.sql:exec("CREATE TABLE IF NOT EXISTS t (n)")
        return state.sql:query("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c")
    end,
    forever_caught = function(state)
        pcall(function() state.sql:query("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c") end)
        return "went on"
    end,
    loop = function(state) while true do end end,
}
object "Account" {}
local Feed = connection "Feed" {
    open = function(conn) conn:follow(A("a"), "put") conn:send({ open = true }) end,
    event = "forward",
}
on "fetch" (function(request)
    if request.upgrade then return request:upgrade(Feed, nil, Account("ada")) end
    return { body = { n = A("a"):put(7), path = request.path } }
end)
-- web/index.html --
<p>hello</p>
`

// real starts the system in real time, on a real port.
func real(t *testing.T, limits hostd.Limits) (s *standalone.Standalone, addr string) {
	t.Helper()
	return realOf(t, realApp, limits)
}

// realOf is real with another app.
func realOf(t *testing.T, files string, limits hostd.Limits) (s *standalone.Standalone, addr string) {
	t.Helper()
	dir := t.TempDir()
	testkit.WriteApp(t, filepath.Join(dir, "app"), txtar.Parse([]byte(files)))
	log := testkit.Logger(t)
	a, err := app.Load(filepath.Join(dir, "app"), app.Options{Library: lualib.Open(log)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if s, err = standalone.Open(ctx, standalone.Config{App: a, Data: filepath.Join(dir, "data"), Log: log, Listen: l, Limits: limits}); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

// The thin path over real sockets.
// spec: HTTP-4, CONN-5
func TestRealSockets(t *testing.T) {
	_, addr := real(t, hostd.Limits{})
	ws, resp, err := websocket.DefaultDialer.Dial("ws://"+addr+"/feed", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer ws.Close()
	next := func() string {
		_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, data, err := ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := next(); got != `{"open":true}` {
		t.Fatal(got)
	}
	for path, want := range map[string]string{"/": "<p>hello</p>", "/x%20y": `{"n":7,"path":"/x y"}`} {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		_ = resp.Write(&b)
		resp.Body.Close()
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %s", path, b.String())
		}
	}
	if got := next(); got != `{"type":"event","topic":"put","from":{"id":"A/a","class":"A","name":"a"},"data":{"n":7}}` {
		t.Error(got)
	}
}

// A statement without end is interrupted at the call's deadline, a loop in Lua too, and others go on meanwhile. No
// pcall keeps the call alive.
// spec: SQL-7, OBJ-11
func TestDeadline(t *testing.T) {
	s, _ := real(t, hostd.Limits{Run: 3 * time.Second, Budget: 1 << 40})
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	call := func(id, method string) (json.RawMessage, error) {
		return s.Client().Call(ctx, wire.CallRequest{To: id, Method: method, Args: json.RawMessage("[1]")})
	}
	fine := func(id, when string) {
		t.Helper()
		out, err := call(id, "put")
		for err != nil && strings.HasPrefix(err.Error(), "timeout: ") && ctx.Err() == nil { // on a slow machine
			out, err = call(id, "put")
		}
		if err != nil || string(out) != "[1]" {
			t.Errorf("%s: %s %v", when, out, err)
		}
	}
	var wg sync.WaitGroup
	for _, method := range []string{"forever", "forever_caught", "loop"} {
		wg.Go(func() {
			if out, err := call("A/"+method, method); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
				t.Errorf("%s: %s %v", method, out, err)
			}
			fine("A/"+method, "after "+method)
		})
	}
	for range 20 {
		fine("A/other", "another object")
	}
	wg.Wait()
}
