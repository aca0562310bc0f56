package system

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/pkg/settings"
	"weir/services/host/hostd"
	"weir/test/testkit"
)

const clientsApp = `
-- main.lua --
local User = object "User" {}
local Echo = connection "Echo" { frame = function(conn, f) conn:send(type(f) == "string" and #f or f) end }
on "fetch" (function(request)
    if request.upgrade then return request:upgrade(Echo, nil, User("u")) end
    return { body = request.remote }
end)
`

// limited runs the app under limits of clients.
func limited(t *testing.T, c settings.Clients, test func(t *testing.T, s *testkit.System)) {
	testkit.Bubble(t, txtar.Parse([]byte(clientsApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		s.Clients = c
		s.Restart()
		test(t, s)
	})
}

// An address may have so many websockets; requests go on, and one that closes makes room.
// spec: CONN-2
func TestConnectionsOfAnAddress(t *testing.T) {
	limited(t, settings.Clients{Connections: 2}, func(t *testing.T, s *testkit.System) {
		a, b := connect(t, s, "/"), connect(t, s, "/")
		defer b.Close()
		if _, err := s.Connect("/"); err == nil || !strings.HasPrefix(err.Error(), "429 ") {
			t.Errorf("a third one: %v", err)
		}
		if status, _, _, err := s.HTTP(http.MethodGet, "/", ""); err != nil || status != http.StatusOK {
			t.Errorf("a request: %d %v", status, err)
		}
		a.Close()
		time.Sleep(time.Second)
		connect(t, s, "/").Close()
	})
}

// A websocket may send so many frames and bytes a second, and as much at once; one that sends more is closed, and no
// other.
// spec: CONN-8
func TestFramesOfASocket(t *testing.T) {
	limited(t, settings.Clients{Frames: 5, FrameBytes: 1000}, func(t *testing.T, s *testkit.System) {
		other := connect(t, s, "/")
		defer other.Close()
		slow := connect(t, s, "/")
		defer slow.Close()
		for range 20 {
			if err := slow.Send("1"); err != nil {
				t.Fatal(err)
			}
			wants(t, "five a second", slow, "1")
			time.Sleep(200 * time.Millisecond)
		}
		for what, frames := range map[string]int{"1": 6, `"` + strings.Repeat("x", 200_000) + `"`: 2} {
			fast := connect(t, s, "/")
			for range frames {
				_ = fast.Send(what)
			}
			var err error
			for err == nil {
				_, err = fast.Next()
			}
			if !strings.Contains(err.Error(), "1008") {
				t.Errorf("%d frames of %d bytes at once: %v", frames, len(what), err)
			}
		}
		if err := other.Send("2"); err != nil {
			t.Fatal(err)
		}
		wants(t, "beside them", other, "2")
	})
}
