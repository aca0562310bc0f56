package luavm

import (
	"math/bits"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) openTable() {
	vm.module("table", map[string]lua.LGFunction{
		"concat": vm.tabConcat,
		"insert": vm.tabInsert,
		"maxn":   vm.tabMaxn,
		"remove": vm.tabRemove,
		"sort":   vm.tabSort,
	})
}

func (vm *VM) tabInsert(L *lua.LState) int {
	t := vm.writable(L, 1)
	n := t.Len()
	switch L.GetTop() {
	case 2:
		vm.store(L, t, lua.LNumber(n+1), L.Get(2))
	case 3:
		pos, v := argInt(L, 2), L.Get(3)
		if pos > n || pos < 1 { // as Lua 5.1: no shifting past the end, and none below 1
			vm.store(L, t, lua.LNumber(pos), v)
			return 0
		}
		vm.grow(L, t, lua.LNumber(n+1))
		vm.spend(L, (n-pos)/8)
		t.Insert(pos, v)
	default:
		fail(L, "wrong number of arguments to 'insert'")
	}
	return 0
}

func (vm *VM) tabRemove(L *lua.LState) int {
	t := vm.writable(L, 1)
	n := t.Len()
	pos := optInt(L, 2, n)
	if n == 0 || pos < 1 || pos > n {
		L.Push(lua.LNil)
		return 1
	}
	vm.spend(L, (n-pos)/8)
	v := t.RawGetInt(pos)
	t.Remove(pos)
	L.Push(v)
	return 1
}

func (vm *VM) tabMaxn(L *lua.LState) int {
	t := vm.readable(L, 1)
	most := lua.LNumber(t.MaxN())
	count := 0
	t.ForEach(func(k, _ lua.LValue) {
		count++
		if n, ok := k.(lua.LNumber); ok && n > most {
			most = n
		}
	})
	vm.poll.m.Work(int64(count) / 4)
	L.Push(most)
	return 1
}

func (vm *VM) tabConcat(L *lua.LState) int {
	t := vm.readable(L, 1)
	sep := ""
	if L.Get(2) != lua.LNil {
		sep = argString(L, 2)
	}
	i, j := optInt(L, 3, 1), 0
	if L.Get(4) == lua.LNil {
		j = t.Len()
	} else {
		j = argInt(L, 4)
	}
	// First how long it becomes, then it: a string that is too long is refused before it is built.
	size := 0
	for k := i; k <= j; k++ {
		v := t.RawGet(lua.LNumber(k))
		if !lua.LVCanConvToString(v) {
			fail(L, "invalid value ("+v.Type().String()+") at index "+numberText(lua.LNumber(k))+" in table for 'concat'")
		}
		if size += len(text(v)); k < j {
			size += len(sep)
		}
		if size > vm.opts.MaxString {
			vm.room(L, -1)
		}
		if k&1023 == 1023 {
			vm.spend(L, 256)
		}
	}
	vm.room(L, size)
	var b strings.Builder
	b.Grow(size)
	for k := i; k <= j; k++ {
		b.WriteString(text(t.RawGet(lua.LNumber(k))))
		if k < j {
			b.WriteString(sep)
		}
	}
	return vm.pushString(L, b.String())
}

// sorter sorts a copy, so that a comparator can neither see nor break a half-sorted table.
type sorter struct {
	vm     *VM
	L      *lua.LState
	less   lua.LValue
	values []lua.LValue
}

func (s *sorter) Len() int      { return len(s.values) }
func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }
func (s *sorter) Less(i, j int) bool {
	if s.less != lua.LNil {
		return lua.LVAsBool(s.vm.call1(s.L, s.less, s.values[i], s.values[j]))
	}
	return s.L.LessThan(s.values[i], s.values[j])
}

func (vm *VM) tabSort(L *lua.LState) int {
	t := vm.writable(L, 1)
	less := L.Get(2)
	if less != lua.LNil {
		argFunction(L, 2)
	}
	n := t.Len()
	vm.poll.m.Built(int64(n) * 16)
	vm.spend(L, n*bits.Len(uint(n))/2)
	s := &sorter{vm: vm, L: L, less: less, values: make([]lua.LValue, n)}
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}
