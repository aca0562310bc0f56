package luavm

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// argString is argument n as a string; numbers convert.
func argString(L *lua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(v)
	}
	badType(L, n, "string")
	return ""
}

// argNumber is argument n as a number; numeric strings convert.
func argNumber(L *lua.LState, n int) float64 {
	switch v := L.Get(n).(type) {
	case lua.LNumber:
		return float64(v)
	case lua.LString:
		if f, ok := parseNumber(string(v)); ok {
			return f
		}
	}
	badType(L, n, "number")
	return 0
}

// argInt is argument n as an integer, truncated and kept within ±2^53.
func argInt(L *lua.LState, n int) int { return toInt(argNumber(L, n)) }

// optInt is argInt, or d when the argument is nil or missing.
func optInt(L *lua.LState, n, d int) int {
	if L.Get(n) == lua.LNil {
		return d
	}
	return argInt(L, n)
}

// argTable, argFunction and argThread are argument n, which must be just that.
func argTable(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		badType(L, n, "table")
	}
	return t
}

func argFunction(L *lua.LState, n int) *lua.LFunction {
	f, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		badType(L, n, "function")
	}
	return f
}

func argThread(L *lua.LState, n int) *lua.LState {
	th, ok := L.Get(n).(*lua.LState)
	if !ok {
		badType(L, n, "coroutine")
	}
	return th
}

func toInt(f float64) int {
	const most = 1 << 53
	switch {
	case math.IsNaN(f):
		return 0
	case f > most:
		return most
	case f < -most:
		return -most
	}
	return int(f)
}

func badType(L *lua.LState, n int, want string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	badArg(L, n, fmt.Sprintf("%s expected, got %s", want, got))
}

// badArg raises "bad argument #n to 'name' (…)".
func badArg(L *lua.LState, n int, msg string) {
	name := "?"
	if dbg, ok := L.GetStack(0); ok {
		if _, err := L.GetInfo("n", dbg, lua.LNil); err == nil && dbg.Name != "" && dbg.Name[0] != 0x28 {
			name = strings.TrimPrefix(dbg.Name, hidden)
		}
	}
	fail(L, fmt.Sprintf("bad argument #%d to '%s' (%s)", n, name, msg))
}

// fail raises a Lua error at the position of the Lua function that called.
func fail(L *lua.LState, msg string) { L.RaiseError("%s", msg) }

// argAny insists that argument n was given, be it nil.
func argAny(L *lua.LState, n int) lua.LValue {
	if n > L.GetTop() {
		badArg(L, n, "value expected")
	}
	return L.Get(n)
}

// room raises ErrMemory when an operation would build a string of n bytes that is over the limit, and charges it
// otherwise.
func (vm *VM) room(L *lua.LState, n int) {
	if n > vm.opts.MaxString || n < 0 {
		Raise(L, &limitError{is: ErrMemory, text: fmt.Sprintf(
			"memory limit: a string over %d bytes; build it in parts", vm.opts.MaxString)})
	}
	vm.poll.m.Built(int64(n))
	vm.scan(n)
}

// scan charges reading n bytes.
func (vm *VM) scan(n int) { vm.poll.m.Work(int64(n) / 32) }

// stop raises when the call was cut, for loops in Go.
func (vm *VM) stop(L *lua.LState) {
	if m := vm.poll.m; m.stopped.Load() {
		Raise(L, m.Err())
	}
}

// spend charges n instructions and stops if that was too much.
func (vm *VM) spend(L *lua.LState, n int) {
	vm.poll.m.Work(int64(n))
	vm.stop(L)
}

func (vm *VM) pushString(L *lua.LState, s string) int {
	L.Push(lua.LString(s))
	return 1
}
