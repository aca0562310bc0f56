package system

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const leakApp = `
-- main.lua --
local A = object "A" {
    publishes = { put = "public" },
    hooks = { init = function(state) state.sql:exec("CREATE TABLE t (x)") end },
    put = function(state, n)
        state.sql:exec("INSERT INTO t VALUES (?)", { n })
        state.n = (state.n or 0) + 1
        state:publish("put", n)
        return state.sql:query_one("SELECT count(*) AS n FROM t").n
    end,
}
object "B" {
    receives = { ["A:put"] = function(state, event) state.store:set("n", event.data) end },
    watch = function(state, name) state:follow(A(name), "put") end,
}
local User = object "User" {}
local Ws = connection "Ws" {
    open = function(conn) conn:follow(A("a"), "put") conn:send("open") end,
    frame = function(conn, kind) if kind == "raise" then error("on purpose") end conn:close(1000) end,
    event = "forward",
    timer = { every = "1s", run = function(conn) end },
}
on "fetch" (function(request)
    if request.upgrade then return request:upgrade(Ws, { text = ("x"):rep(1000) }, User("u")) end
    return { body = "fine" }
end)
`

// held is what the process holds: goroutines, descriptors, and the live heap in KiB.
type held struct{ goroutines, files, heap int }

func hold(t *testing.T) held {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // empties pools, and runs what finalizers left
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{runtime.NumGoroutine(), len(fds), int(m.HeapAlloc >> 10)}
}

// returned fails if more is held than before: ten goroutines and five files, which NATS has more or less of at times, and
// heap, in KiB.
func returned(t *testing.T, before held, heap int) {
	t.Helper()
	now := hold(t)
	t.Logf("before %+v, now %+v", before, now)
	if now.goroutines > before.goroutines+10 || now.files > before.files+5 || now.heap > before.heap+heap {
		t.Errorf("%+v is held, and %+v was before", now, before)
	}
}

// A thousand sockets that came and went, in each way a socket goes, leave nothing: no goroutine, no edge, no memory (1
// KiB each at most).
// spec: CONN-6, CONN-14
func TestSocketsLeaveNothing(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(leakApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		ways := []func(c *testkit.Socket){
			func(c *testkit.Socket) { c.Close() },
			func(c *testkit.Socket) { _ = c.Send(`"close"`) },
			func(c *testkit.Socket) { _ = c.Send(`"raise"`) },
			func(c *testkit.Socket) { _ = c.Raw("binary", "") },
			func(c *testkit.Socket) { _ = c.Raw("text", "{") },
		}
		round := func(n int) {
			for i := range n {
				c, err := s.Connect("/ws")
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.Next(); got != `"open"` {
					t.Fatal(got, err)
				}
				if i%10 == 0 {
					s.MustCall("A/a", "put", `1`)
				}
				ways[i%len(ways)](c)
				for err == nil {
					_, err = c.Next()
				}
				c.Close()
			}
			time.Sleep(10 * time.Minute) // all is noticed, and A/a sleeps
			synctest.Wait()
		}
		round(100)
		before := hold(t)
		round(1000)
		returned(t, before, 1000)
		if e := s.Edges("A/a"); len(e.Edges) != 0 {
			t.Errorf("%d edges are left: %+v", len(e.Edges), e.Edges[0])
		}
	})
}

// Sockets that are refused or break off within the handshake leave nothing, either.
// spec: CONN-2, CONN-14
func TestHalfSocketsLeaveNothing(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(leakApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		const head = "GET /ws HTTP/1.1\r\nHost: app.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
		round := func(n int) {
			for i := range n {
				switch c := []string{head, head + "\r\n", head + "Origin: http://evil.test\r\n\r\n", "GET /x HTTP/1.1\r\nHost: app.test\r\n\r\n"}[i%4]; i % 4 {
				case 0:
					exchange(t, s.Listener(), nil, c) // breaks off
				default:
					exchange(t, s.Listener(), []string{"GET"}, c) // has an answer, and breaks off
				}
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
		}
		round(100)
		before := hold(t)
		round(1000)
		returned(t, before, 1000)
	})
}

// A thousand wakes, by calls and by events, and as many sleeps leave nothing: no goroutine, no file, no memory (1 KiB each
// at most).
// spec: OBJ-14
func TestWakesLeaveNothing(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(leakApp)), hostd.Limits{Idle: time.Second}, func(t *testing.T, s *testkit.System) {
		round := func(n int) {
			for i := range n {
				s.MustCall(fmt.Sprintf("A/%d", i%25), "put", fmt.Sprint(i))
				if i%25 == 24 {
					time.Sleep(10 * time.Second)
				}
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
		for i := range 5 {
			s.MustCall(fmt.Sprintf("B/%d", i), "watch", fmt.Sprintf("%q", fmt.Sprint(i)))
		}
		round(100)
		before := hold(t)
		round(1000)
		returned(t, before, 1000)
		if n := openFiles(t); n != 0 {
			t.Errorf("%d files of objects are open", n)
		}
		if got := s.MustCall("A/0", "put", `1`); got != "45" {
			t.Errorf("A/0 has %s rows", got)
		}
	})
}

// Fifty stops and starts, with objects awake and sockets open, leave nothing of the forty before the last ten; and with
// the last stop all is gone.
// spec: OPS-4
func TestRestartsLeaveNothing(t *testing.T) {
	current := goleak.IgnoreCurrent()
	files := hold(t).files
	testkit.Bubble(t, txtar.Parse([]byte(leakApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		round := func(n int) {
			for i := range n {
				s.MustCall("A/a", "put", fmt.Sprint(i))
				c, err := s.Connect("/ws")
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.Next(); got != `"open"` {
					t.Fatal(got, err)
				}
				s.Restart()
				for err == nil {
					_, err = c.Next()
				}
				c.Close()
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
		}
		round(10)
		before := hold(t)
		round(40)
		returned(t, before, 1000)
		if got := s.MustCall("A/a", "put", `1`); got != "51" {
			t.Errorf("A/a has %s rows", got)
		}
	})
	if err := goleak.Find(current); err != nil {
		t.Error(err)
	}
	if now := hold(t).files; now > files {
		t.Errorf("%d files are open, %d were before", now, files)
	}
}
