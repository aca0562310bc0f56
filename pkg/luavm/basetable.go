package luavm

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) baseGetMetatable(L *lua.LState) int {
	out := lua.LNil
	// Only tables show theirs: the metatables of strings and of platform values are not for app code.
	if t, ok := argAny(L, 1).(*lua.LTable); ok && t.Metatable != lua.LValue(ArrayMark) {
		out = t.Metatable
		if mt, ok := out.(*lua.LTable); ok {
			if lock := mt.RawGetString("__metatable"); lock != lua.LNil {
				out = lock
			}
		}
	}
	L.Push(out)
	return 1
}

func (vm *VM) baseSetMetatable(L *lua.LState) int {
	t := argTable(L, 1)
	mt := argAny(L, 2)
	if mt.Type() != lua.LTNil && mt.Type() != lua.LTTable {
		badType(L, 2, "nil or table")
	}
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		fail(L, "cannot change a protected metatable")
	}
	t.Metatable = mt
	L.SetTop(1)
	return 1
}

func (vm *VM) baseRawEqual(L *lua.LState) int {
	L.Push(lua.LBool(L.RawEqual(argAny(L, 1), argAny(L, 2))))
	return 1
}

func (vm *VM) baseRawGet(L *lua.LState) int {
	L.Push(vm.readable(L, 1).RawGet(argAny(L, 2)))
	return 1
}

func (vm *VM) baseRawSet(L *lua.LState) int {
	t := vm.writable(L, 1)
	vm.store(L, t, argAny(L, 2), argAny(L, 3))
	L.SetTop(1)
	return 1
}

// store is a raw store that keeps to the rules: growth is charged, a string key takes the array mark away.
func (vm *VM) store(L *lua.LState, t *lua.LTable, k, v lua.LValue) {
	vm.grow(L, t, k)
	unmark(t, k, v)
	L.RawSet(t, k, v)
}

// grow charges what a store under k makes of t: gopher-lua fills a table's array part with nils up to the key.
func (vm *VM) grow(L *lua.LState, t *lua.LTable, k lua.LValue) {
	n, ok := k.(lua.LNumber)
	if !ok || n <= maxFreeKey || n > maxArrayIndex || float64(n) != math.Trunc(float64(n)) {
		return
	}
	have := t.MaxN()
	gap := int(n) - have - 1
	if gap > 0 {
		vm.poll.m.Built(int64(gap) * 16)
		vm.spend(L, gap/2)
	} else if int(n) == maxArrayIndex && gap == 0 {
		Raise(L, &limitError{is: ErrMemory, text: "memory limit: an array of more than 2,097,151 items; keep less in one table"})
	}
}

func (vm *VM) baseNext(L *lua.LState) int {
	t := vm.readable(L, 1)
	k, v := t.Next(L.Get(2))
	if k == lua.LNil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(k)
	L.Push(v)
	return 2
}

func (vm *VM) basePairs(L *lua.LState) int {
	argTable(L, 1)
	L.SetTop(1)
	L.Insert(vm.globals.RawGetString("next"), 1)
	L.Push(lua.LNil)
	return 3
}

func (vm *VM) ipairsStep(L *lua.LState) int {
	i := argInt(L, 2) + 1
	v := vm.readable(L, 1).RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	L.Push(lua.LNumber(i))
	L.Push(v)
	return 2
}
