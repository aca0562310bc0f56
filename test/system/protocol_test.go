package system

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const pong = 10

// closes is a close frame with a code and a reason.
func closes(code int, reason string) string {
	return frame(fin|closing, string([]byte{byte(code >> 8), byte(code)})+reason)
}

// bytewise cuts a frame into its bytes.
func bytewise(f string) (parts []string) {
	for i := range len(f) {
		parts = append(parts, f[i:i+1])
	}
	return parts
}

// stars is a text of n bytes as a frame's payload.
func stars(n int) string { return `"` + strings.Repeat("*", n-2) + `"` }

// What RFC 6455 says of text frames, pings, reserved bits, opcodes, fragments, UTF-8 and closing, case by case: what is
// allowed is answered, all else fails the connection with a code.
// spec: CONN-10, CONN-13
func TestProtocol(t *testing.T) {
	type exchange struct {
		name string
		send []string
		want []string // frames, "pong" and what it carries, "close" and its code
	}
	echo := func(payload string) string { return `{"got":` + payload + `,"type":"string"}` }
	var cases []exchange
	add := func(name string, want []string, send ...string) { cases = append(cases, exchange{name, send, want}) }
	failed := []string{"close 1002"}

	for _, n := range []int{2, 124, 125, 126, 127, 128, 999} {
		add(fmt.Sprint("text of ", n), []string{echo(stars(n))}, frame(fin|text, stars(n)))
		add(fmt.Sprint("text of ", n, " byte by byte"), []string{echo(stars(n))}, bytewise(frame(fin|text, stars(n)))...)
	}
	for _, n := range []int{65535, 65536, 1 << 17, 256 << 10} {
		add(fmt.Sprint("text of ", n), []string{fmt.Sprintf(`{"got":%d,"type":"number"}`, n-2)}, frame(fin|text, stars(n)))
		var parts []string
		for i, p := range slices.Collect(slices.Chunk([]byte(stars(n)), 997)) {
			first := byte(cont)
			if i == 0 {
				first = text
			}
			parts = append(parts, frame(first, string(p)))
		}
		add(fmt.Sprint("text of ", n, " in fragments"), []string{fmt.Sprintf(`{"got":%d,"type":"number"}`, n-2)}, append(parts, frame(fin|cont, ""))...)
	}

	add("a ping without payload", []string{"pong "}, frame(fin|ping, ""))
	add("a ping", []string{"pong hello"}, frame(fin|ping, "hello"))
	add("a ping of any bytes", []string{"pong \x00\xff\xfe"}, frame(fin|ping, "\x00\xff\xfe"))
	add("a ping of 125", []string{"pong " + strings.Repeat("p", 125)}, frame(fin|ping, strings.Repeat("p", 125)))
	add("a ping byte by byte", []string{"pong hello"}, bytewise(frame(fin|ping, "hello"))...)
	add("ten pings", []string{"pong 0", "pong 1", "pong 2", "pong 3", "pong 4", "pong 5", "pong 6", "pong 7", "pong 8", "pong 9"},
		frame(fin|ping, "0"), frame(fin|ping, "1"), frame(fin|ping, "2"), frame(fin|ping, "3"), frame(fin|ping, "4"),
		frame(fin|ping, "5"), frame(fin|ping, "6"), frame(fin|ping, "7"), frame(fin|ping, "8"), frame(fin|ping, "9"))
	add("a pong that nobody asked for", []string{`{"got":1,"type":"number"}`}, frame(fin|pong, "x"), frame(fin|text, "1"))
	add("a ping of 126", failed, frame(fin|ping, strings.Repeat("p", 126)))
	add("a pong of 126", failed, frame(fin|pong, strings.Repeat("p", 126)))

	for bits := byte(1); bits < 8; bits++ {
		for _, op := range []byte{text, ping, pong, closing} {
			add(fmt.Sprint("reserved bits ", bits, " opcode ", op), failed, frame(fin|bits<<4|op, ""))
		}
		add(fmt.Sprint("reserved bits ", bits, " in a continuation"), failed, frame(text, "1"), frame(fin|bits<<4|cont, ""))
	}
	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		add(fmt.Sprint("opcode ", op), failed, frame(fin|op, ""))
		add(fmt.Sprint("opcode ", op, " amid fragments"), failed, frame(text, "1"), frame(fin|op, "x"))
	}

	for _, op := range []byte{ping, pong, closing} {
		add(fmt.Sprint("opcode ", op, " in fragments"), failed, frame(op, "x"), frame(fin|cont, "y"))
	}
	add("empty fragments", []string{echo(`"ab"`)}, frame(text, ""), frame(cont, `"a`), frame(cont, ""), frame(cont, `b"`), frame(fin|cont, ""))
	add("pings amid fragments", []string{"pong 1", "pong 2", echo(`"ab"`)},
		frame(text, `"a`), frame(fin|ping, "1"), frame(cont, `b`), frame(fin|ping, "2"), frame(fin|cont, `"`))
	add("a continuation that is not the last, of nothing", failed, frame(cont, "1"))
	add("binary amid fragments", failed, frame(text, "["), frame(fin|bin, "]"))

	for name, s := range map[string]string{
		"two bytes": "é", "three bytes": "€", "four bytes": "😀", "the last of one": "\x7f", "the first of two": "\u0080", "the last of two": "\u07ff",
		"the first of three": "\u0800", "before the surrogates": "\ud7ff", "after the surrogates": "\ue000", "no character": "\ufffe",
		"the last of three": "\uffff", "the first of four": "\U00010000", "the last of all": "\U0010ffff", "Greek": "κόσμε",
	} {
		payload := `"` + s + `"`
		add("UTF-8: "+name, []string{echo(payload)}, frame(fin|text, payload))
		parts := []string{frame(text, "")}
		for _, b := range bytewise(payload) {
			parts = append(parts, frame(cont, b))
		}
		add("UTF-8 by fragments of a byte: "+name, []string{echo(payload)}, append(parts, frame(fin|cont, ""))...)
	}
	for name, s := range map[string]string{
		"a continuation byte": "\x80", "two of them": "\x80\xbf", "a lone first byte": "\xc3", "a first byte and a space": "\xc3 ", "three bytes cut": "\xe2\x82",
		"four bytes cut": "\xf0\x9f\x98", "impossible fe": "\xfe", "impossible ff": "\xff", "overlong two": "\xc0\xaf", "overlong three": "\xe0\x80\xaf",
		"overlong four": "\xf0\x80\x80\xaf", "overlong nul": "\xc0\x80", "a surrogate": "\xed\xa0\x80", "a pair of them": "\xed\xa0\x80\xed\xb0\x80",
		"past the last": "\xf4\x90\x80\x80", "five bytes": "\xf8\x88\x80\x80\x80", "six bytes": "\xfc\x84\x80\x80\x80\x80",
		"good, then bad": "κόσμε\xed\xa0\x80edited",
	} {
		add("no UTF-8: "+name, []string{"close 1007"}, frame(fin|text, `"`+s+`"`))
		half := len(s) / 2
		add("no UTF-8 in fragments: "+name, []string{"close 1007"}, frame(text, `"`+s[:half]), frame(cont, s[half:]), frame(fin|cont, `"`))
	}

	add("close without a code", []string{"close 1005"}, frame(fin|closing, ""))
	for _, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		add(fmt.Sprint("close ", code), []string{fmt.Sprint("close ", code)}, closes(code, ""))
	}
	for _, code := range []int{0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		add(fmt.Sprint("close with code ", code), failed, closes(code, ""))
	}
	add("close with half a code", []string{"close 1005"}, frame(fin|closing, "\x03")) // the library takes it for none
	add("close with a reason", []string{"close 1000"}, closes(1000, "bye"))
	add("close with a reason of 123", []string{"close 1000"}, closes(1000, strings.Repeat("r", 123)))
	add("close with a reason of 124", failed, closes(1000, strings.Repeat("r", 124)))
	add("close with a reason that is no UTF-8", failed, closes(1000, "\xce\xba\xed\xa0\x80"))
	add("text after close", []string{"close 1000"}, closes(1000, ""), frame(fin|text, "1"))
	add("a ping after close", []string{"close 1000"}, closes(1000, ""), frame(fin|ping, "x"))
	add("close amid fragments", []string{"close 1000"}, frame(text, "["), closes(1000, ""))

	testkit.Bubble(t, txtar.Parse([]byte(framesApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		for i, c := range cases {
			user := fmt.Sprint("u", i)
			ws := dialClient(t, s.Listener(), "/ws?user="+user)
			ws.SetPongHandler(func(data string) error { ws.in <- "pong " + data; return nil })
			ws.write(c.send...)
			for _, want := range c.want {
				if got := ws.next(); got != want {
					t.Errorf("%s: %.200q, want %q", c.name, got, want)
				}
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
