package system

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/objectid"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const slowApp = `
-- main.lua --
local Log = object "Log" {
    put = function(state, text)
        local l = state.store:get("l") or json.array()
        l[#l + 1] = text
        state.store:set("l", l)
    end,
    all = function(state) return state.store:get("l") or json.array() end,
}
local P = object "P" {
    publishes = { e = "public" },
    burst = function(state, from, to) for i = from, to do state:publish("e", i) end end,
    big = function(state, n) state:publish("e", ("x"):rep(n)) end,
    watchers = function(state) return #state:followers() end,
}
local Stuck = object "Stuck" { write = function(state) state.store:set("n", 1) end, read = function(state) end }
local User = object "User" {}
local function close(conn)
    Log(conn.name):put(conn.closed.by)
    Log(conn.name .. " reason"):put(conn.closed.reason)
end
local programs = {
    ["/slow"] = connection "Slow" {
        open = function(conn) conn:follow(P("p"), "e") end,
        event = function(conn, event)
            if event.data == 0 then Stuck("s"):write() end
            conn:send(event.data)
        end,
        close = close,
    },
    ["/slowopen"] = connection "SlowOpen" {
        open = function(conn) Stuck("s"):write() conn:send("open") end,
        frame = function(conn, f) conn:send(f) end,
        close = close,
    },
    ["/slowframe"] = connection "SlowFrame" {
        open = function(conn) conn:send("open") end,
        frame = function(conn, f)
            if f == 0 then Stuck("s"):write() end
            conn:send(type(f) == "string" and #f or f)
        end,
        close = close,
    },
    ["/forward"] = connection "Forward" { open = function(conn) conn:follow(P("p"), "e") conn:send("open") end, event = "forward", close = close },
    ["/timer"] = connection "Timer" {
        open = function(conn) conn:send("open") end,
        frame = function(conn) Stuck("s"):write() end,
        timer = { every = "1s", run = function(conn, missed) conn:send({ missed = missed }) end },
    },
}
on "fetch" (function(request)
    if request.path == "/wait" then
        Stuck("s" .. (request.query.n or "")):write()
        return { body = "waited" }
    end
    return request:upgrade(programs[request.path], nil, User(request.query.user))
end)
`

// slow runs the app above with a gate: while it is shut, no write of Stuck/s becomes durable.
func slow(t *testing.T, test func(t *testing.T, s *testkit.System, shut func() (open func()))) {
	t.Helper()
	slowWith(t, hostd.Limits{}, test)
}

// slowWith is slow with limits.
func slowWith(t *testing.T, limits hostd.Limits, test func(t *testing.T, s *testkit.System, shut func() (open func()))) {
	t.Helper()
	testkit.Bubble(t, txtar.Parse([]byte(slowApp)), limits, func(t *testing.T, s *testkit.System) {
		var gate atomic.Pointer[chan struct{}]
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if g := gate.Load(); id.Class == "Stuck" && g != nil {
				<-*g
			}
			return sync()
		}
		s.Restart()
		test(t, s, func() func() {
			g := make(chan struct{})
			gate.Store(&g)
			return func() { gate.Store(nil); close(g); time.Sleep(time.Second) }
		})
	})
}

func connect(t *testing.T, s *testkit.System, path string) *testkit.Socket {
	t.Helper()
	c, err := s.Connect(path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	return c
}

// wants checks the next frames.
func wants(t *testing.T, what string, c *testkit.Socket, frames ...string) {
	t.Helper()
	for _, want := range frames {
		if got, err := c.Next(); got != want || err != nil {
			t.Fatalf("%s: %.200s %v, want %s", what, got, err, want)
		}
	}
}

// overflown checks that a socket was closed with 1013 and that its program was told.
func overflown(t *testing.T, s *testkit.System, c *testkit.Socket, user string) {
	t.Helper()
	var err error
	for err == nil {
		_, err = c.Next()
	}
	if text := err.Error(); !strings.Contains(text, "close 1013") || !strings.Contains(text, "connect") {
		t.Errorf("%s: %v", user, err)
	}
	if got := s.MustCall("Log/"+user, "all"); got != `["overflow"]` {
		t.Errorf("%s: close handlers: %s", user, got)
	}
}

func numbers(from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// The inbox holds 256 items while a handler runs, deliveries and frames; not one of them is lost or out of order.
// spec: CONN-8
func TestInboxHolds(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		events, frames := connect(t, s, "/slow?user=e"), connect(t, s, "/slowframe?user=f")
		defer events.Close()
		defer frames.Close()
		open := shut()
		s.MustCall("P/p", "burst", "0", "0")
		_ = frames.Send("0")
		synctest.Wait()
		s.MustCall("P/p", "burst", "1", "256")
		for _, n := range numbers(1, 256) {
			if err := frames.Send(n); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		open()
		wants(t, "events", events, numbers(0, 256)...)
		wants(t, "frames", frames, append([]string{`"open"`}, numbers(0, 256)...)...)
		// Of its 1 MiB most may be in a few items.
		open = shut()
		_ = frames.Send("0")
		synctest.Wait()
		for range 4 {
			_ = frames.Send(`"` + strings.Repeat("x", 250_000) + `"`)
		}
		time.Sleep(time.Second)
		open()
		wants(t, "large frames", frames, "0", "250000", "250000", "250000", "250000")
	})
}

// One that overflows, in items or in bytes, by deliveries or by frames, is closed and told to reconnect; nobody else is
// slowed meanwhile, the publisher neither.
// spec: CONN-8, CONN-12
func TestInboxOverflows(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		for user, c := range map[string]struct {
			path string
			fill func(c *testkit.Socket)
		}{
			"events": {"/slow", func(*testkit.Socket) { s.MustCall("P/p", "burst", "1", "300") }},
			"eventbytes": {"/slow", func(*testkit.Socket) {
				for range 6 {
					s.MustCall("P/p", "big", "250000")
					synctest.Wait() // the other has it
				}
			}},
			"frames": {"/slowframe", func(c *testkit.Socket) {
				for _, n := range numbers(1, 300) {
					_ = c.Send(n)
				}
			}},
			"framebytes": {"/slowframe", func(c *testkit.Socket) {
				for range 6 {
					_ = c.Send(`"` + strings.Repeat("x", 250000) + `"`)
				}
			}},
			"framesatopen": {"/slowopen", func(c *testkit.Socket) {
				for _, n := range numbers(1, 300) {
					_ = c.Send(n)
				}
			}},
		} {
			open := shut()
			other := connect(t, s, "/forward?user=other"+user)
			wants(t, user, other, `"open"`)
			one := connect(t, s, c.path+"?user="+user)
			if c.path == "/slow" {
				s.MustCall("P/p", "burst", "0", "0")
				wants(t, user, other, `{"type":"event","topic":"e","from":{"id":"P/p","class":"P","name":"p"},"data":0}`)
			}
			if c.path == "/slowframe" {
				_ = one.Send("0")
			}
			synctest.Wait()
			start := time.Now()
			c.fill(one)
			s.MustCall("P/p", "burst", "7", "7")
			for last := ""; !strings.Contains(last, `"data":7}`); {
				var err error
				if last, err = other.Next(); err != nil {
					t.Fatalf("%s: the other: %v", user, err)
				}
			}
			if d := time.Since(start); d > 2*time.Second { // of virtual time
				t.Errorf("%s: the other socket waited %v", user, d)
			}
			synctest.Wait()
			open()
			overflown(t, s, one, user)
			other.Close()
		}
		time.Sleep(time.Second)
		if got := s.MustCall("P/p", "watchers"); got != "0" {
			t.Errorf("%s edges are left", got)
		}
	})
}

// open runs first: frames that come with the handshake wait for it, in their order.
// spec: CONN-8
func TestOpenFirst(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		open := shut()
		c := connect(t, s, "/slowopen?user=o") // the 101 does not wait for open
		defer c.Close()
		for _, n := range numbers(1, 20) {
			_ = c.Send(n)
		}
		if frame, err := c.Next(); err == nil {
			t.Errorf("before open: %s", frame)
		}
		open()
		wants(t, "afterwards", c, append([]string{`"open"`}, numbers(1, 20)...)...)
	})
}

// The timer runs on a grid that a slow handler does not move, and is told how many of its times went by.
// spec: CONN-11
func TestTimerMissed(t *testing.T) {
	slow(t, func(t *testing.T, s *testkit.System, shut func() func()) {
		c := connect(t, s, "/timer?user=t")
		defer c.Close()
		wants(t, "at first", c, `"open"`)
		time.Sleep(500 * time.Millisecond) // what follows looks between two times of the grid
		for range 3 {
			time.Sleep(time.Second)
			wants(t, "in time", c, `{"missed":0}`)
		}
		open := shut()
		_ = c.Send("1")
		time.Sleep(5 * time.Second) // five times go by in the handler
		synctest.Wait()
		go open()
		time.Sleep(100 * time.Millisecond)
		if frame, err := c.Next(); err != nil || frame != `{"missed":4}` && frame != `{"missed":5}` {
			t.Errorf("afterwards: %s %v", frame, err)
		}
		time.Sleep(100 * time.Millisecond)
		for range 3 {
			wants(t, "in time again", c, `{"missed":0}`)
			time.Sleep(time.Second)
		}
	})
}
