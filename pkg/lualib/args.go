package lualib

import (
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
)

// maxText bounds the string that one function builds, as the VM bounds its own (BOX-3).
const maxText = 16 << 20

// bytesPerWork is how many bytes one instruction is worth that are read, copied or hashed.
const bytesPerWork = 32

// text gives a string argument or raises. what names the function in errors, here and below.
func text(L *lua.LState, n int, what string) string {
	s, ok := L.Get(n).(lua.LString)
	if !ok {
		L.RaiseError("%s takes a string, not %s", what, kind(L.Get(n)))
	}
	return string(s)
}

// secretText gives the text of a string or secret argument or raises.
func secretText(L *lua.LState, n int, what string) string {
	if s, ok := secret(L.Get(n)); ok {
		return s.Reveal()
	}
	s, ok := L.Get(n).(lua.LString)
	if !ok {
		L.RaiseError("%s takes a string or a secret, not %s", what, kind(L.Get(n)))
	}
	return string(s)
}

func secret(v lua.LValue) (*app.Secret, bool) {
	if ud, ok := v.(*lua.LUserData); ok {
		s, ok := ud.Value.(*app.Secret)
		return s, ok
	}
	return nil, false
}

// table gives a table argument or raises.
func table(L *lua.LState, n int, what, example string) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		L.RaiseError("%s, not %s: %s", what, kind(L.Get(n)), example)
	}
	return t
}

// only raises when a table of options has another key than the known ones.
func only(L *lua.LState, t *lua.LTable, what string, known ...string) {
	t.ForEach(func(k, _ lua.LValue) {
		if name, ok := k.(lua.LString); !ok || !slices.Contains(known, string(name)) {
			L.RaiseError("%s has no option %q: the options are %s", what, short(k.String()), strings.Join(known, " and "))
		}
	})
}

// kind names a value's type in errors.
func kind(v lua.LValue) string {
	if _, ok := secret(v); ok {
		return "a secret"
	}
	if v == lua.LNil {
		return "nil"
	}
	return "a " + v.Type().String()
}

// short cuts text for an error.
func short(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// refuse is the answer to bad input: nil and a reason.
func refuse(L *lua.LState, format string, args ...any) int {
	L.Push(lua.LNil)
	L.Push(lua.LString(fmt.Sprintf(format, args...)))
	return 2
}

// spend charges work in instructions and raises if the call may not go on.
func (l *library) spend(L *lua.LState, work int) {
	m := l.vm.Meter()
	if m == nil {
		return
	}
	m.Work(int64(work))
	if err := m.Err(); err != nil {
		luavm.Raise(L, err)
	}
}

// read charges reading n bytes once.
func (l *library) read(L *lua.LState, n int) { l.spend(L, 1+n/bytesPerWork) }

// build charges building a string of n bytes, and raises if it would be too long.
func (l *library) build(L *lua.LState, what string, n int) {
	if n > maxText {
		L.RaiseError("%s would build %d bytes, more than the %d MiB of one string: do it in parts", what, n, maxText>>20)
	}
	l.grow(n)
	l.read(L, n)
}

// grow charges n bytes of memory; a charge of work after it raises if that was too much.
func (l *library) grow(n int) {
	if m := l.vm.Meter(); m != nil {
		m.Built(int64(n))
	}
}

// give pushes a string.
func give(L *lua.LState, s string) int {
	L.Push(lua.LString(s))
	return 1
}
