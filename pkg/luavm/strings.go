package luavm

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) openString() {
	t := vm.module("string", map[string]lua.LGFunction{
		"byte":    vm.strByte,
		"char":    vm.strChar,
		"find":    vm.strFind,
		"format":  vm.strFormat,
		"gmatch":  vm.strGmatch,
		"gsub":    vm.strGsub,
		"len":     vm.strLen,
		"lower":   vm.strLower,
		"match":   vm.strMatch,
		"rep":     vm.strRep,
		"reverse": vm.strReverse,
		"sub":     vm.strSub,
		"upper":   vm.strUpper,
	})
	// Methods of strings. App code never gets this metatable, and string values can not have another.
	mt := vm.L.CreateTable(0, 2)
	mt.RawSetString("__index", t)
	mt.RawSetString("__metatable", lua.LFalse)
	vm.L.SetMetatable(lua.LString(""), mt)
}

// span turns Lua's i and j into the half-open range of a string of n bytes.
func span(i, j, n int) (from, to int) {
	if i < 0 {
		i = max(n+i+1, 1)
	} else if i == 0 {
		i = 1
	}
	if j < 0 {
		j = n + j + 1
	}
	j = min(j, n)
	if i > j {
		return 0, 0
	}
	return i - 1, j
}

func (vm *VM) strByte(L *lua.LState) int {
	s := argString(L, 1)
	i := optInt(L, 2, 1)
	from, to := span(i, optInt(L, 3, i), len(s))
	if to-from > maxResults {
		fail(L, "string slice too long")
	}
	for _, c := range []byte(s[from:to]) {
		L.Push(lua.LNumber(c))
	}
	return to - from
}

func (vm *VM) strChar(L *lua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		c := argInt(L, i+1)
		if c < 0 || c > 255 {
			badArg(L, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	vm.room(L, len(b))
	return vm.pushString(L, string(b))
}

func (vm *VM) strLen(L *lua.LState) int {
	L.Push(lua.LNumber(len(argString(L, 1))))
	return 1
}

func (vm *VM) strSub(L *lua.LState) int {
	s := argString(L, 1)
	from, to := span(argInt(L, 2), optInt(L, 3, -1), len(s))
	return vm.pushString(L, s[from:to]) // shares the bytes of s
}

// strLower and strUpper change ASCII letters only, as Lua does in its C locale.
func (vm *VM) strLower(L *lua.LState) int {
	return vm.mapBytes(L, func(c byte) byte {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	})
}

func (vm *VM) strUpper(L *lua.LState) int {
	return vm.mapBytes(L, func(c byte) byte {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		return c
	})
}

func (vm *VM) mapBytes(L *lua.LState, f func(byte) byte) int {
	s := argString(L, 1)
	vm.room(L, len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = f(s[i])
	}
	return vm.pushString(L, string(b))
}

func (vm *VM) strReverse(L *lua.LState) int {
	s := argString(L, 1)
	vm.room(L, len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	return vm.pushString(L, string(b))
}

func (vm *VM) strRep(L *lua.LState) int {
	s, n := argString(L, 1), max(argInt(L, 2), 0)
	if len(s) == 0 || n == 0 {
		return vm.pushString(L, "")
	}
	if n > vm.opts.MaxString {
		vm.room(L, -1)
	}
	vm.room(L, n*len(s))
	return vm.pushString(L, strings.Repeat(s, n))
}
