package luavm

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openOperators sets the functions that rewritten operators call, where only GETGLOBAL with their name finds them.
func (vm *VM) openOperators() {
	for name, fn := range map[string]lua.LGFunction{
		opConcat:  vm.concat,
		opConcatN: vm.concatList,
		opSet:     vm.set,
		opKey:     vm.key,
	} {
		vm.env.RawSetString(name, vm.L.NewFunction(fn))
	}
}

// set is t[k] = v.
func (vm *VM) set(L *lua.LState) int {
	t, k := L.Get(1), L.Get(2)
	if tb, ok := t.(*lua.LTable); ok {
		vm.grow(L, tb, k)
	}
	L.SetTable(t, k, L.Get(3))
	return 0
}

// key is the k of {[k] = v}; the table is new, so anything under k will be nil.
func (vm *VM) key(L *lua.LState) int {
	k := L.Get(1)
	vm.grow(L, &lua.LTable{Metatable: lua.LNil}, k)
	L.Push(k)
	return 1
}

func (vm *VM) concat(L *lua.LState) int {
	n := L.GetTop()
	return vm.join(L, n, L.Get)
}

func (vm *VM) concatList(L *lua.LState) int {
	t := argTable(L, 2)
	return vm.join(L, argInt(L, 1), t.RawGetInt)
}

// join is at(1) .. at(2) .. … .. at(n). The operator associates to the right, so runs of strings are joined from the
// right end, and a value that is no string meets what is right of it.
func (vm *VM) join(L *lua.LState, n int, at func(int) lua.LValue) int {
	acc := at(n)
	for i := n - 1; i > 0; {
		lhs := at(i)
		if !lua.LVCanConvToString(lhs) || !lua.LVCanConvToString(acc) {
			op := L.GetMetaField(lhs, "__concat")
			if op == lua.LNil {
				op = L.GetMetaField(acc, "__concat")
			}
			if op == lua.LNil {
				bad := lhs
				if lua.LVCanConvToString(lhs) {
					bad = acc
				}
				fail(L, "attempt to concatenate a "+bad.Type().String()+" value")
			}
			acc = vm.call1(L, op, lhs, acc)
			i--
			continue
		}
		from, size := i, len(text(acc))
		for ; from > 0 && lua.LVCanConvToString(at(from)); from-- {
			size += len(text(at(from)))
		}
		vm.room(L, size)
		var b strings.Builder
		b.Grow(size)
		for k := from + 1; k <= i; k++ {
			b.WriteString(text(at(k)))
		}
		b.WriteString(text(acc))
		acc = lua.LString(b.String())
		i = from
	}
	L.Push(acc)
	return 1
}

// text is a string or number as a string.
func text(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return numberText(n)
	}
	return string(v.(lua.LString))
}
