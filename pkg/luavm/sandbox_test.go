package luavm

import (
	"errors"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// spec: BOX-1 what app code can name is exactly this
func TestLibrarySurface(t *testing.T) {
	want := map[string]string{
		"": "_VERSION assert coroutine error getmetatable ipairs math next os pairs pcall print rawequal rawget rawset select " +
			"setmetatable string table tonumber tostring type unpack xpcall",
		"string":    "byte char find format gmatch gsub len lower match rep reverse sub upper",
		"table":     "concat insert maxn remove sort",
		"coroutine": "create resume running status wrap yield",
		"os":        "clock date time",
		"math": "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min mod modf pi pow " +
			"rad random randomseed sin sinh sqrt tan tanh",
	}
	vm := newVM(t)
	for name, keys := range want {
		var have []string
		table := vm.globals
		if name != "" {
			table = vm.proxies[vm.globals.RawGetString(name).(*lua.LTable)]
		}
		table.ForEach(func(k, _ lua.LValue) { have = append(have, k.String()) })
		if len(have) != len(strings.Fields(keys)) {
			t.Errorf("%s has %v", name, have)
		}
		for _, k := range strings.Fields(keys) {
			if table.RawGetString(k) == lua.LNil {
				t.Errorf("%s.%s is missing", name, k)
			}
		}
	}
}

// spec: BOX-1 the known ways out of gopher-lua
func TestNoWayOut(t *testing.T) {
	check(t, []luaCase{
		{`load, loadstring, loadfile, dofile, getfenv, setfenv, newproxy, module, require, package, debug, io, channel, collectgarbage, _G, _printregs, _GOPHER_LUA_VERSION`,
			strings.TrimSuffix(strings.Repeat("nil|", 17), "|")},
		{`string.dump, os.execute, os.exit, os.getenv, os.remove, os.rename, os.tmpname, os.setlocale, os.setenv, coroutine.isyieldable`,
			strings.TrimSuffix(strings.Repeat("nil|", 10), "|")},
		{`getmetatable(""), getmetatable(print), getmetatable(nil), getmetatable(coroutine.create(print))`, "nil|nil|nil|nil"},
		{`pcall(setmetatable, "", {})`, "false|main.lua:1: bad argument #1 to '?' (table expected, got string)"},
		{`pcall(function() getmetatable("").__index = {} end) == false`, "true"},
		{`getmetatable(string), getmetatable(math)`, "false|false"},
		{`local s = string s.rep = nil`, "error: main.lua:1: library table is read-only"},
		// No operator can be named, and none of their names is a global, a field or a key that pairs gives.
		{`local t = {} for k in pairs(string) do t[#t + 1] = k:find("^%a+$") and "" or k end return table.concat(t)`, ""},
		{`local ok, e = pcall(function() return 1 .. {} end) return e`, "main.lua:1: attempt to concatenate a table value"},
		// __gc and __mode mean nothing here.
		{`local t = setmetatable({}, {__gc = function() error("gc") end, __mode = "k"}) t = nil return 1`, "1"},
		// A metatable that app code sets can not change what platform code relies on.
		{`local t = setmetatable({}, {__index = function() error("x", 0) end}) return rawget(t, 1), next(t), #t`, "nil|nil|0"},
		{`local t = setmetatable({}, {__index = string}) return t.rep("ab", 2), pcall(function() t.x = 1 end), rawget(t, "x")`, "abab|true|1"},
		{`local t = setmetatable({}, {__newindex = string}) return pcall(function() t.rep = 1 end)`, "false|main.lua:1: library table is read-only"},
		{`local co = coroutine.wrap(function() return getmetatable(""), load end) return co()`, "nil|nil"},
	})
}

// spec: BOX-2 globals and libraries are read-only once the app has loaded
func TestFrozen(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	lib := vm.L.NewTable()
	inner := vm.L.NewTable()
	inner.RawSetString("x", lua.LNumber(1))
	lib.RawSetString("inner", inner)
	lib.RawSetString("f", lua.LNumber(2))
	vm.SetGlobal("lib", lib)
	callable := vm.L.NewTable()
	mt := vm.L.NewTable()
	mt.RawSetString("__call", vm.L.NewFunction(func(L *lua.LState) int { return pushAll(L, []lua.LValue{lua.LString("called")}) }))
	callable.Metatable = mt
	vm.SetGlobal("callable", callable)
	fns, err := run(t, vm, `
		answer = 42
		function handler() answer = 43 end
		function string.trim(s) return (s:gsub("^%s+", "")) end
		return handler`)
	if err != nil {
		t.Fatal(err)
	}
	vm.Freeze()
	if _, err := vm.Call(nil, fns[0]); err == nil || err.Error() != "main.lua:3: global 'answer' is read-only" {
		t.Error(err)
	}
	const ro = "main.lua:1: library table is read-only"
	for _, c := range []luaCase{
		{`return answer, ("  x"):trim(), lib.inner.x, lib.f, callable()`, "42|x|1|2|called"},
		{`fresh = 1`, "error: main.lua:1: global 'fresh' is read-only"},
		{`string = nil`, "error: main.lua:1: global 'string' is read-only"},
		{`function print() end`, "error: main.lua:1: global 'print' is read-only"},
		{`print, answer = 1, 2`, "error: main.lua:1: global 'answer' is read-only"},
		{`string.rep = 1`, "error: " + ro},
		{`string.fresh = 1`, "error: " + ro},
		{`lib.f = 1`, "error: " + ro},
		{`lib.inner.x = 5`, "error: " + ro},
		{`lib["in" .. "ner"].x = 5`, "error: " + ro},
		{`function string.rep() end`, "error: " + ro},
		{`rawset(string, "rep", 1)`, "error: " + ro},
		{`rawset(lib.inner, "x", 1)`, "error: " + ro},
		{`table.insert(string, 1)`, "error: " + ro},
		{`table.remove(lib)`, "error: " + ro},
		{`table.sort(lib)`, "error: " + ro},
		{`setmetatable(string, {})`, "error: main.lua:1: cannot change a protected metatable"},
		{`setmetatable(lib.inner, nil)`, "error: main.lua:1: cannot change a protected metatable"},
		{`return getmetatable(lib), rawget(lib, "f"), next(lib.inner)`, "false|2|x|1"},
		{`local n = 0 for k, v in pairs(lib) do n = n + 1 end return n, #lib`, "2|0"},
		{`for k, v in pairs(lib) do if k == "inner" then v.x = 9 end end`, "error: " + ro},
		{`local f, s = pairs(lib) s.f = 3`, "error: " + ro},
		{`return lib == lib, lib.inner == lib.inner`, "true|true"},
	} {
		got, err := run(t, vm, c.src)
		text := show(got)
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.src, text, c.want)
		}
	}
	if inner.RawGetString("x") != lua.LNumber(1) || lib.RawGetString("f") != lua.LNumber(2) {
		t.Error("a library was changed")
	}
}

// Lua code that is run past Call gets nowhere.
func TestNothingRunsUnmetered(t *testing.T) {
	vm := newVM(t)
	fn := vm.L.NewFunctionFromProto(compile(t, `return 1`).Proto)
	err := vm.L.CallByParam(lua.P{Fn: fn, Protect: true})
	if err == nil || !strings.Contains(err.Error(), "ran outside a call") {
		t.Fatal(err)
	}
	if vm.Meter() != nil {
		t.Error("a meter runs")
	}
}

func TestClosed(t *testing.T) {
	vm := New(Options{})
	c := compile(t, `return 1`)
	vm.Close()
	vm.Close()
	if _, err := vm.Run(nil, c); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
