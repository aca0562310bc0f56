package luavm

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) openBase() {
	L := vm.L
	for name, fn := range map[string]lua.LGFunction{
		"assert":       vm.baseAssert,
		"error":        vm.baseError,
		"getmetatable": vm.baseGetMetatable,
		"next":         vm.baseNext,
		"pairs":        vm.basePairs,
		"pcall":        vm.basePCall,
		"print":        vm.basePrint,
		"rawequal":     vm.baseRawEqual,
		"rawget":       vm.baseRawGet,
		"rawset":       vm.baseRawSet,
		"select":       vm.baseSelect,
		"setmetatable": vm.baseSetMetatable,
		"tonumber":     vm.baseToNumber,
		"tostring":     vm.baseToString,
		"type":         vm.baseType,
		"unpack":       vm.baseUnpack,
		"xpcall":       vm.baseXPCall,
	} {
		vm.SetGlobal(name, L.NewFunction(fn))
	}
	step := L.NewFunction(vm.ipairsStep)
	vm.SetGlobal("ipairs", L.NewFunction(func(L *lua.LState) int {
		argTable(L, 1)
		L.SetTop(1)
		L.Insert(step, 1)
		L.Push(lua.LNumber(0))
		return 3
	}))
	vm.SetGlobal("_VERSION", lua.LString("Lua 5.1"))
}

func (vm *VM) baseAssert(L *lua.LState) int {
	if lua.LVAsBool(argAny(L, 1)) {
		return L.GetTop()
	}
	msg := L.Get(2)
	if msg == lua.LNil {
		fail(L, "assertion failed!")
	}
	L.Error(msg, 0)
	return 0
}

func (vm *VM) baseError(L *lua.LState) int {
	v := L.Get(1)
	level := optInt(L, 2, 1)
	if s, ok := v.(lua.LString); ok && level > 0 {
		pos := where(L, level)
		vm.room(L, len(pos)+len(s))
		v = lua.LString(pos) + s
	}
	L.Error(v, 0)
	return 0
}

// basePCall and baseXPCall never give a cut call back to Lua.
func (vm *VM) basePCall(L *lua.LState) int {
	argAny(L, 1)
	if e := vm.try(L); e != nil {
		L.Push(lua.LFalse)
		L.Push(e.Object)
		return 2
	}
	L.Insert(lua.LTrue, 1)
	return L.GetTop()
}

func (vm *VM) baseXPCall(L *lua.LState) int {
	argAny(L, 2)
	handler := L.Get(2)
	L.SetTop(1)
	e := vm.try(L)
	if e == nil {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.Push(handler)
	L.Push(e.Object)
	if again := vm.try(L); again != nil {
		L.Push(again.Object)
	}
	L.Insert(lua.LFalse, 1)
	return L.GetTop()
}

// try calls the frame's function and arguments; what must not be caught it raises again.
func (vm *VM) try(L *lua.LState) *lua.ApiError {
	vm.guarded++
	e := vm.inPlace(L)
	vm.guarded--
	if e != nil && vm.ended() {
		throw(L, &raised{fail: e})
	}
	return e
}

func (vm *VM) basePrint(L *lua.LState) int {
	var b strings.Builder
	for i := 1; i <= L.GetTop(); i++ {
		s := vm.toString(L, L.Get(i))
		vm.room(L, b.Len()+len(s)+1)
		if i > 1 {
			b.WriteByte('\t')
		}
		b.WriteString(s)
	}
	if vm.opts.Print != nil {
		vm.opts.Print(b.String())
	}
	return 0
}

func (vm *VM) baseSelect(L *lua.LState) int {
	if s, ok := L.Get(1).(lua.LString); ok && s == "#" {
		L.Push(lua.LNumber(L.GetTop() - 1))
		return 1
	}
	n, top := argInt(L, 1), L.GetTop()
	switch {
	case n < 0:
		n += top
	case n > top:
		n = top
	}
	if n < 1 {
		badArg(L, 1, "index out of range")
	}
	return top - n
}

func (vm *VM) baseToNumber(L *lua.LState) int {
	v := argAny(L, 1)
	base := optInt(L, 2, 10)
	if base < 2 || base > 36 {
		badArg(L, 2, "base out of range")
	}
	var out lua.LValue = lua.LNil
	switch v := v.(type) {
	case lua.LNumber:
		out = v
		if base == 10 {
			break
		}
		if f, ok := parseDigits(numberText(v), base); ok {
			out = lua.LNumber(f)
		} else {
			out = lua.LNil
		}
	case lua.LString:
		vm.scan(len(v))
		if base == 10 {
			if f, ok := parseNumber(string(v)); ok {
				out = lua.LNumber(f)
			}
			break
		}
		s := strings.Trim(string(v), space)
		if base == 16 && len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") {
			s = s[2:]
		}
		if f, ok := parseDigits(s, base); ok {
			out = lua.LNumber(f)
		}
	}
	L.Push(out)
	return 1
}

func (vm *VM) baseToString(L *lua.LState) int {
	v := argAny(L, 1)
	if s, ok := v.(lua.LString); ok {
		L.Push(s)
		return 1
	}
	return vm.pushString(L, vm.toString(L, v))
}

// toString is what tostring gives, __tostring included.
func (vm *VM) toString(L *lua.LState, v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(v)
	}
	op := L.GetMetaField(v, "__tostring")
	if op.Type() != lua.LTFunction {
		return v.String()
	}
	switch s := vm.call1(L, op, v).(type) {
	case lua.LString:
		return string(s)
	case lua.LNumber:
		return numberText(s)
	}
	fail(L, "'tostring' must return a string to 'print'")
	return ""
}

// call1 calls a function from Go for its first result.
func (vm *VM) call1(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 1)
	v := L.Get(-1)
	L.Pop(1)
	return v
}

func (vm *VM) baseType(L *lua.LState) int {
	return vm.pushString(L, argAny(L, 1).Type().String())
}

func (vm *VM) baseUnpack(L *lua.LState) int {
	t := vm.readable(L, 1)
	i := optInt(L, 2, 1)
	j := t.Len()
	if L.Get(3) != lua.LNil {
		j = argInt(L, 3)
	}
	if i > j {
		return 0
	}
	if j-i >= maxResults {
		fail(L, "too many results to unpack")
	}
	for k := i; k <= j; k++ {
		L.Push(t.RawGet(lua.LNumber(k)))
	}
	vm.poll.m.Work(int64(j-i) / 8)
	return j - i + 1
}
