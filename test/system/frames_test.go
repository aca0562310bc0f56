package system

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const framesApp = `
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
    say = function(state, d) state:publish("e", d) end,
    watchers = function(state) return #state:followers() end,
}
local User = object "User" {}
local Ws = connection "Ws" {
    open = function(conn) conn:follow(P("p"), "e") end,
    frame = function(conn, f)
        if type(f) == "string" and #f > 1000 then f = #f end
        conn:send({ got = f, type = type(f) })
    end,
    close = function(conn) Log(conn.name):put(conn.closed.by) end,
}
on "fetch" (function(request) return request:upgrade(Ws, nil, User(request.query.user)) end)
`

// client is a websocket whose frames the test writes byte by byte. What comes is read all the time; no ping is answered.
type client struct {
	*websocket.Conn
	in chan string
}

func dialClient(t *testing.T, l *testkit.Pipe, path string) client {
	t.Helper()
	d := websocket.Dialer{NetDialContext: l.Dial, HandshakeTimeout: 10 * time.Second}
	ws, resp, err := d.Dial("ws://app.test"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	ws.SetPingHandler(func(string) error { return nil })
	c := client{ws, make(chan string, 1000)}
	go func() {
		for {
			_, data, err := ws.ReadMessage()
			var end *websocket.CloseError
			switch {
			case errors.As(err, &end):
				c.in <- fmt.Sprint("close ", end.Code)
			case err != nil:
				c.in <- err.Error()
			default:
				c.in <- string(data)
				continue
			}
			return
		}
	}()
	return c
}

// write sends bytes as they are. That the server stops reading in their middle is no matter.
func (c client) write(parts ...string) {
	for _, p := range parts {
		_ = c.NetConn().SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := c.NetConn().Write([]byte(p)); err != nil {
			return
		}
	}
}

// next gives the next frame, or "close" and the code.
func (c client) next() string {
	select {
	case f := <-c.in:
		return f
	case <-time.After(5 * time.Second):
		return "nothing"
	}
}

const fin, rsv, text, cont, bin, closing, ping = 0x80, 0x40, 1, 0, 2, 8, 9

// frame is one as a client sends it, masked with zeros.
func frame(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return string(b) + "\x00\x00\x00\x00" + payload
}

// A text frame of JSON is taken in whatever pieces it comes; all else closes the socket, with a code that says why, and
// nothing of it reaches the program.
// spec: CONN-10, VAL-4, VAL-5, VAL-6
func TestFrames(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	testkit.Bubble(t, txtar.Parse([]byte(framesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for i, c := range []struct {
			name string
			send []string
			want string // a frame, or how it is closed
		}{
			{"text", []string{frame(fin|text, `{"a":1}`)}, `{"got":{"a":1},"type":"table"}`},
			{"white space", []string{frame(fin|text, " \r\n\t5 ")}, `{"got":5,"type":"number"}`},
			{"null", []string{frame(fin|text, `null`)}, `{"type":"nil"}`},
			{"an empty array", []string{frame(fin|text, `[]`)}, `{"got":[],"type":"table"}`},
			{"escapes", []string{frame(fin|text, `"\u00e9\ud83d\ude00\u0000"`)}, `{"got":"é😀\u0000","type":"string"}`},
			{"fragments", []string{frame(text, `{"a"`), frame(cont, `:`), frame(fin|cont, `1}`)}, `{"got":{"a":1},"type":"table"}`},
			{"fragments and a ping", []string{frame(text, `[1`), frame(fin|ping, "x"), frame(fin|cont, `]`)}, `{"got":[1],"type":"table"}`},
			{"a letter in two fragments", []string{frame(text, "\"\xc3"), frame(fin|cont, "\xa9\"")}, `{"got":"é","type":"string"}`},
			{"bytes in pieces", strings.SplitAfter(frame(fin|text, `"abc"`), ""), `{"got":"abc","type":"string"}`},
			{"the largest", []string{frame(fin|text, long(256<<10))}, `{"got":262142,"type":"number"}`},
			{"the deepest", []string{frame(fin|text, nest(62))}, `{"got":` + nest(62) + `,"type":"table"}`},

			{"one byte too large", []string{frame(fin|text, long(256<<10+1))}, "close 1009"},
			{"too large in fragments", []string{frame(text, long(200<<10)), frame(cont, long(100<<10)), frame(fin|cont, "x")}, "close 1009"},
			{"a length without the bytes", []string{"\x81\xff\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00"}, "close 1009"},
			{"binary", []string{frame(fin|bin, `{"a":1}`)}, "close 1003"},
			{"binary, empty", []string{frame(fin|bin, ``)}, "close 1003"},
			{"binary in fragments", []string{frame(bin, `{"a"`), frame(fin|cont, `:1}`)}, "close 1003"},
			{"empty", []string{frame(fin|text, ``)}, "close 1007"},
			{"white space only", []string{frame(fin|text, `  `)}, "close 1007"},
			{"two values", []string{frame(fin|text, `{"a":1}{"b":2}`)}, "close 1007"},
			{"a letter after", []string{frame(fin|text, `1x`)}, "close 1007"},
			{"cut off", []string{frame(fin|text, `{"a":`)}, "close 1007"},
			{"a word", []string{frame(fin|text, `NaN`)}, "close 1007"},
			{"single quotes", []string{frame(fin|text, `'a'`)}, "close 1007"},
			{"a leading zero", []string{frame(fin|text, `01`)}, "close 1007"},
			{"a last comma", []string{frame(fin|text, `[1,]`)}, "close 1007"},
			{"a byte order mark", []string{frame(fin|text, "\ufeff1")}, "close 1007"},
			{"a raw line's end in a text", []string{frame(fin|text, "\"a\nb\"")}, "close 1007"},
			{"half a pair", []string{frame(fin|text, `"\ud800"`)}, "close 1007"},
			{"no UTF-8", []string{frame(fin|text, "\"\xff\"")}, "close 1007"},
			{"no UTF-8 in a key", []string{frame(fin|text, "{\"\xc0\xaf\":1}")}, "close 1007"},
			{"no UTF-8 in a fragment", []string{frame(text, "\"\xc3"), frame(fin|cont, "\"")}, "close 1007"},
			{"a number too large", []string{frame(fin|text, `1e400`)}, "close 1007"},
			{"an integer too large", []string{frame(fin|text, `[9007199254740993]`)}, "close 1007"},
			{"too deep", []string{frame(fin|text, nest(65))}, "close 1007"},
			{"far too deep", []string{frame(fin|text, nest(100_000))}, "close 1007"},

			{"not masked", []string{"\x81\x011"}, "close 1002"},
			{"a reserved bit", []string{frame(fin|rsv|text, `1`)}, "close 1002"},
			{"an unknown opcode", []string{frame(fin|3, `1`)}, "close 1002"},
			{"a continuation of nothing", []string{frame(fin|cont, `1`)}, "close 1002"},
			{"text amid fragments", []string{frame(text, `[`), frame(fin|text, `1`)}, "close 1002"},
			{"a ping in fragments", []string{frame(ping, `x`)}, "close 1002"},
			{"a ping too long", []string{frame(fin|ping, strings.Repeat("x", 126))}, "close 1002"},
			{"a close with a reserved code", []string{frame(fin|closing, "\x03\xed")}, "close 1002"},
		} {
			user := fmt.Sprint("u", i)
			ws := dialClient(t, s.Listener(), "/ws?user="+user)
			ws.write(c.send...)
			if got := ws.next(); got != c.want {
				t.Errorf("%s: %.200s, want %s", c.name, got, c.want)
			}
			_ = ws.Close()
			time.Sleep(time.Second)
			if got := s.MustCall("Log/"+user, "all"); got != `["peer"]` && got != `["error"]` {
				t.Errorf("%s: close handlers: %s", c.name, got)
			}
		}
		if got := s.MustCall("P/p", "watchers"); got != "0" {
			t.Errorf("%s edges are left", got)
		}
	})
}

// A peer may leave in any way, or vanish: close runs once, by peer, and the edges go.
// spec: CONN-12, CONN-13
func TestPeerLeaves(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(framesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for name, c := range map[string]struct {
			leave func(ws client)
			wait  time.Duration
		}{
			"1000":           {func(ws client) { ws.write(frame(fin|closing, "\x03\xe8bye")) }, time.Second},
			"1001":           {func(ws client) { ws.write(frame(fin|closing, "\x03\xe9")) }, time.Second},
			"4000":           {func(ws client) { ws.write(frame(fin|closing, "\x0f\xa0")) }, time.Second},
			"no code":        {func(ws client) { ws.write(frame(fin|closing, "")) }, time.Second},
			"cut":            {func(ws client) { _ = ws.NetConn().Close() }, time.Second},
			"cut in a frame": {func(ws client) { ws.write("\x81\xfe"); _ = ws.NetConn().Close() }, time.Second},
			"half a frame":   {func(ws client) { ws.write("\x81\xfe") }, 80 * time.Second},
			"half a message": {func(ws client) { ws.write(frame(text, "[1,")) }, 80 * time.Second},
			"silent":         {func(ws client) {}, 80 * time.Second},
		} {
			ws := dialClient(t, s.Listener(), "/ws?user="+strings.ReplaceAll(name, " ", ""))
			time.Sleep(time.Second)
			if got := s.MustCall("P/p", "watchers"); got != "1" {
				t.Fatalf("%s: %s edges at first", name, got)
			}
			c.leave(ws)
			time.Sleep(c.wait)
			if got := s.MustCall("P/p", "watchers"); got != "0" {
				t.Errorf("%s: %s edges are left", name, got)
			}
			if got := s.MustCall("Log/"+strings.ReplaceAll(name, " ", ""), "all"); got != `["peer"]` {
				t.Errorf("%s: close handlers: %s", name, got)
			}
			_ = ws.Close()
		}
	})
}

// A peer that sends, though it answers no ping, is not silent; one that only answers pings lives too.
// spec: CONN-13
func TestNotSilent(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(framesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		talks, err := testkit.DialSilent(s.Listener(), "/ws?user=talks")
		if err != nil {
			t.Fatal(err)
		}
		defer talks.Close()
		pongs, err := s.Connect("/ws?user=pongs")
		if err != nil {
			t.Fatal(err)
		}
		defer pongs.Close()
		for range 20 {
			time.Sleep(20 * time.Second)
			if err := talks.Send("1"); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.MustCall("P/p", "watchers"); got != "2" {
			t.Errorf("%s of 2 edges live", got)
		}
	})
}

// A peer that goes on sending when its socket has ended is not read for long: 4,096 frames, or two seconds.
// spec: CONN-10
func TestFramesAfterTheEnd(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(framesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		ends := func() *websocket.Conn {
			ws := dialDeaf(t, s.Listener(), "/ws?user=late")
			ws.SetCloseHandler(func(int, string) error { return nil }) // it does not answer
			_ = ws.WriteMessage(websocket.BinaryMessage, nil)
			if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, 1003) {
				t.Fatal(err)
			}
			return ws
		}
		ws, start, n := ends(), time.Now(), 0
		for ; n < 10_000; n++ {
			if _, err := ws.NetConn().Write([]byte(frame(fin|text, "1"))); err != nil {
				break
			}
		}
		if took := time.Since(start); n < 4096 || n > 4096+1000 || took > 100*time.Millisecond { // some are in the server's buffer
			t.Errorf("%d frames were taken in %v", n, took)
		}
		ws, start = ends(), time.Now()
		for {
			if _, err := ws.NetConn().Write([]byte(frame(fin|text, "1"))); err != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(start); took < time.Second || took > 4*time.Second {
			t.Errorf("frames were taken for %v", took)
		}
	})
}
