package lualib

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/value"
)

// pairBytes is what one field of a table takes beside its text.
const pairBytes = 64

// urlEncode is url.encode(text): percent-encoded, as one component of an address.
func (l *library) urlEncode(L *lua.LState) int {
	s := text(L, 1, "url.encode")
	l.read(L, len(s))
	l.build(L, "url.encode", 3*len(s))
	return give(L, strings.ReplaceAll(url.QueryEscape(s), "+", "%20"))
}

// urlDecode is url.decode(text): the bytes of a percent-encoded component; + stands for itself. Bad input gives nil and
// a reason.
func (l *library) urlDecode(L *lua.LState) int {
	s := text(L, 1, "url.decode")
	l.build(L, "url.decode", len(s))
	out, err := url.PathUnescape(s)
	if err != nil {
		return refuse(L, "url.decode: %s", badEscape(s, err))
	}
	return give(L, out)
}

// badEscape says where an escape is broken.
func badEscape(s string, err error) string {
	var bad url.EscapeError
	ok := errors.As(err, &bad)
	if !ok {
		return "not percent-encoded"
	}
	at := strings.Index(s, string(bad))
	if len(bad) < 3 { // cut short by the end
		at = len(s) - len(bad)
	}
	return fmt.Sprintf("%q at byte %d of %q is no escape: %% and two hex digits", string(bad), at+1, short(s))
}

// urlQuery is url.query(t): a query string of names to strings, numbers, booleans or arrays of them, sorted by name.
func (l *library) urlQuery(L *lua.LState) int {
	t := table(L, 1, "url.query takes a table", `url.query { page = 2, tag = { "a", "b" } }`)
	out, size := url.Values{}, 0
	add := func(name string, v lua.LValue) {
		s := ""
		switch v := v.(type) {
		case lua.LString:
			s = string(v)
		case lua.LNumber, lua.LBool:
			b, err := value.Encode(v, name, 0)
			if err != nil {
				luavm.Raise(L, err)
			}
			s = string(b)
		default:
			L.RaiseError("url.query: %q must be a string, a number, a boolean or an array of them, not %s", short(name), kind(v))
		}
		n := 3 * (len(name) + len(s) + 1)
		if size += n; size > maxText {
			l.build(L, "url.query", size)
		}
		l.build(L, "url.query", n)
		out.Add(name, s)
	}
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		if !ok {
			L.RaiseError("url.query: the names must be strings, not %s", kind(k))
		}
		list, ok := v.(*lua.LTable)
		if !ok {
			add(string(name), v)
			return
		}
		for i := 1; i <= list.Len(); i++ {
			add(string(name), list.RawGetInt(i))
		}
	})
	return give(L, out.Encode())
}

// urlParseQuery is url.parse_query(text): a table of names to text; the last of repeated names wins, as in
// request.query. Bad input gives nil and a reason.
func (l *library) urlParseQuery(L *lua.LState) int {
	s := text(L, 1, "url.parse_query")
	l.build(L, "url.parse_query", len(s))
	t := L.NewTable()
	for pair := range strings.SplitSeq(strings.TrimPrefix(s, "?"), "&") {
		if pair == "" {
			continue
		}
		l.build(L, "url.parse_query", pairBytes+len(pair))
		name, text, _ := strings.Cut(pair, "=")
		k, err := url.QueryUnescape(name)
		if err != nil {
			return refuse(L, "url.parse_query: %s", badEscape(name, err))
		}
		v, err := url.QueryUnescape(text)
		if err != nil {
			return refuse(L, "url.parse_query: %s", badEscape(text, err))
		}
		t.RawSetString(k, lua.LString(v))
	}
	L.Push(t)
	return 1
}
