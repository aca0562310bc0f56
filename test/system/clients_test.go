package system

import (
	"fmt"
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

// Pings, pongs and fragments are frames too, and their bytes count: who sends more of them than is allowed is closed,
// though none of it makes a message. Without a limit all of it is answered.
// spec: CONN-8
func TestFloodsWithoutMessages(t *testing.T) {
	five, thousand, none := settings.Clients{Frames: 5}, settings.Clients{FrameBytes: 1000}, settings.Clients{}
	const one, largest = `"1"`, 256 << 10
	many := strings.Repeat
	whole, pieces := stars(largest), frame(text, "")
	for i := 0; i < largest; i += 1 << 10 {
		pieces += frame(cont, whole[i:i+1<<10])
	}
	pieces += frame(fin|cont, "")
	long := fmt.Sprint(largest - 2)
	for name, c := range map[string]struct {
		limits settings.Clients
		send   []string
		want   []string
	}{
		"five pings":                {five, []string{many(frame(fin|ping, "x"), 5)}, []string{"pong x", "pong x", "pong x", "pong x", "pong x", "nothing"}},
		"six pings byte by byte":    {five, bytewise(many(frame(fin|ping, ""), 6)), []string{"pong ", "pong ", "pong ", "pong ", "pong ", "close 1008"}},
		"pings and text":            {five, []string{frame(fin|ping, "a"), frame(fin|text, "1"), frame(fin|ping, "b"), frame(fin|text, "2"), many(frame(fin|pong, ""), 2)}, []string{"close 1008"}},
		"pings":                     {five, []string{many(frame(fin|ping, ""), 1000)}, []string{"close 1008"}},
		"pings of 125":              {five, []string{many(frame(fin|ping, many("x", 125)), 1000)}, []string{"close 1008"}},
		"pongs":                     {five, []string{many(frame(fin|pong, "x"), 1000)}, []string{"close 1008"}},
		"empty fragments":           {five, []string{frame(text, "") + many(frame(cont, ""), 1000)}, []string{"close 1008"}},
		"fragments of a byte":       {five, []string{frame(text, `"`) + many(frame(cont, "x"), 1000)}, []string{"close 1008"}},
		"pings amid fragments":      {five, []string{frame(text, "") + many(frame(cont, "")+frame(fin|ping, ""), 500)}, []string{"close 1008"}},
		"a message in five":         {five, []string{frame(text, `"`) + many(frame(cont, ""), 3) + frame(fin|cont, `"`)}, []string{"0", "nothing"}},
		"a message in large pieces": {five, []string{pieces}, []string{long, "nothing"}},
		"bytes of pings":            {thousand, []string{many(frame(fin|ping, ""), 50_000)}, []string{"close 1008"}},
		"bytes of pongs":            {thousand, []string{many(frame(fin|pong, ""), 50_000)}, []string{"close 1008"}},
		"bytes of empty fragments":  {thousand, []string{frame(text, "") + many(frame(cont, ""), 50_000)}, []string{"close 1008"}},
		"the largest message":       {thousand, []string{frame(fin|text, whole)}, []string{long, "nothing"}},
		"the same in pieces":        {thousand, []string{pieces}, []string{long, "nothing"}},
		"no limit, pings":           {none, []string{many(frame(fin|ping, "x"), 50) + frame(fin|text, one)}, []string{"1"}},
		"no limit, pongs":           {none, []string{many(frame(fin|pong, "x"), 50_000) + frame(fin|text, one)}, []string{"1"}},
		"no limit, empty fragments": {none, []string{frame(text, one) + many(frame(cont, ""), 50_000) + frame(fin|cont, "")}, []string{"1"}},
	} {
		limited(t, c.limits, func(t *testing.T, s *testkit.System) {
			ws := dialClient(t, s.Listener(), "/")
			defer ws.Close()
			ws.SetPongHandler(func(data string) error { ws.in <- "pong " + data; return nil })
			go ws.write(c.send...)
			for i, want := range c.want {
				got := ws.next()
				for len(c.want) == 1 && got != want && (strings.HasPrefix(got, "pong ") || got == "1" || got == "2") {
					got = ws.next() // what was answered before
				}
				if got != want {
					t.Errorf("%s: %d: %.200q, want %q", name, i, got, want)
				}
			}
		})
	}
}

// To answer the gateway's pings costs a client nothing; pongs that nobody asked for do.
// spec: CONN-8, CONN-13
func TestPongsAreFree(t *testing.T) {
	limited(t, settings.Clients{Frames: 1}, func(t *testing.T, s *testkit.System) {
		c := connect(t, s, "/")
		defer c.Close()
		for range 4 {
			time.Sleep(25*time.Second + time.Millisecond) // a ping has just been answered
			if err := c.Send("1"); err != nil {
				t.Fatal(err)
			}
			wants(t, "right after a pong", c, "1")
		}
	})
}
