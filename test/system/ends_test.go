package system

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/objectid"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const endsApp = `
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
    publishes = { "e" },
    hooks = { follow = function(state) state.store:set("n", (state.store:get("n") or 0) + 1) return true end },
    write = function(state) state.store:set("n", 0) end,
    say = function(state, d) state:publish("e", d) end,
    watchers = function(state) return #state:followers() end,
}
local User = object "User" {}
local function follow(conn) conn:follow(P("p"), "e") end
local programs = {
    ["/open"] = connection "Open" { open = follow, close = function(conn) Log(conn.name):put(conn.closed.by) end },
    ["/close"] = connection "Close" { close = function(conn)
        Log(conn.name):put(conn.closed.by)
        pcall(follow, conn)
    end },
    ["/closing"] = connection "Closing" { frame = function(conn)
        conn:close(3000)
        pcall(follow, conn)
    end },
    ["/write"] = connection "Write" {
        frame = function(conn, f)
            if f == "write" then
                P("p"):write()
            else
                conn:send(f)
            end
        end,
        close = function(conn) Log(conn.name):put(conn.closed.by) end,
    },
}
on "fetch" (function(request) return request:upgrade(programs[request.path], nil, User(request.query.user)) end)
`

// A follow that is under way, or is asked for, as the socket ends leaves no edge.
// spec: CONN-6, CONN-12
func TestFollowAsItEnds(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(endsApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		gate := make(chan struct{})
		var shut atomic.Bool
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if id.Class == "P" && shut.Load() {
				<-gate
			}
			return sync()
		}
		s.Restart()
		none := func(what string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			if got := s.MustCall("P/p", "watchers"); got != "0" {
				t.Errorf("%s: %s edges are left", what, got)
			}
		}
		c := connect(t, s, "/close?user=a")
		c.Close()
		none("a follow in close")
		c = connect(t, s, "/closing?user=b")
		_ = c.Send("1")
		none("a follow after conn:close")
		shut.Store(true)
		c = connect(t, s, "/open?user=c")
		synctest.Wait()
		c.Close()
		time.Sleep(time.Second)
		shut.Store(false)
		close(gate)
		none("a follow that was under way")
		if got := s.MustCall("Log/c", "all"); got != `["peer"]` {
			t.Errorf("close handlers: %s", got)
		}
	})
}

// A handler that waits for an object for ten seconds is cut off, which ends its socket; the socket next to it goes on
// meanwhile.
// spec: CONN-9, CONN-12, OBJ-11
func TestHandlerWaitsTooLong(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(endsApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		gate := make(chan struct{})
		var shut atomic.Bool
		s.Barrier = func(id objectid.ID, sync func() error) error {
			if id.Class == "P" && shut.Load() {
				<-gate
			}
			return sync()
		}
		s.Restart()
		waits, other := connect(t, s, "/write?user=waits"), connect(t, s, "/write?user=other")
		defer other.Close()
		shut.Store(true)
		_ = waits.Send(`"write"`)
		time.Sleep(time.Second)
		_ = other.Send("1")
		wants(t, "the other", other, "1")
		time.Sleep(7500 * time.Millisecond)
		if frame, err := waits.Next(); err == nil || err.Error() != "no frame" {
			t.Errorf("before ten seconds: %s %v", frame, err)
		}
		time.Sleep(time.Second)
		if frame, err := waits.Next(); err == nil || !strings.Contains(err.Error(), "close 1011") {
			t.Errorf("after ten seconds: %s %v", frame, err)
		}
		time.Sleep(time.Second)
		if got := s.MustCall("Log/waits", "all"); got != `["error"]` {
			t.Errorf("close handlers: %s", got)
		}
		shut.Store(false)
		close(gate)
	})
}

// Many sockets come and go at once, half of them without a word: no edge is left, and each ran close once.
// spec: CONN-6, CONN-12
func TestManyEnds(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(endsApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				ws := dialClient(t, s.Listener(), "/open?user=many")
				if i%3 > 0 {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				}
				if i%2 == 0 {
					ws.write(frame(fin|closing, "\x03\xe8"))
				}
				_ = ws.Close()
			})
			if i%10 == 0 {
				s.MustCall("P/p", "say", `1`)
			}
		}
		wg.Wait()
		time.Sleep(5 * time.Second)
		if got := s.MustCall("P/p", "watchers"); got != "0" {
			t.Errorf("%s edges are left", got)
		}
		if got := strings.Count(s.MustCall("Log/many", "all"), `"peer"`); got != 60 {
			t.Errorf("close ran %d times for 60 sockets", got)
		}
	})
}
