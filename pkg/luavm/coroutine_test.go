package luavm

import (
	"errors"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

func TestCoroutines(t *testing.T) {
	check(t, []luaCase{
		{`local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b) return c * 2, "end" end)
		  local _, x = coroutine.resume(co, 1, 2) local _, y, z = coroutine.resume(co, 5)
		  return x, y, z, coroutine.status(co), coroutine.resume(co)`, "3|10|end|dead|false|cannot resume dead coroutine"},
		{`local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
		  local s = 0 for v in gen do s = s + v end return s`, "6"},
		{`local co co = coroutine.create(function() return coroutine.status(co), coroutine.running() == co, coroutine.resume(co) end)
		  return coroutine.status(co), coroutine.resume(co)`, "suspended|true|running|true|false|cannot resume running coroutine"},
		{`local a a = coroutine.create(function() local b = coroutine.create(function() return coroutine.status(a), coroutine.resume(a) end)
		    return coroutine.resume(b) end) return coroutine.resume(a)`, "true|true|normal|false|cannot resume normal coroutine"},
		{`return coroutine.running(), pcall(coroutine.yield)`, "nil|false|main.lua:1: attempt to yield from outside a coroutine"},
		{`return coroutine.resume(coroutine.create(function() error("x") end))`, "false|main.lua:1: x"},
		{`return coroutine.resume(coroutine.create(function() error({}) end)) == false`, "true"},
		{`local f = coroutine.wrap(function() error("x") end) return pcall(f)`, "false|main.lua:1: x"},
		{`local f = coroutine.wrap(function() end) f() return pcall(f)`, "false|main.lua:1: cannot resume dead coroutine"},
		// Yields that gopher-lua, and Lua 5.1, can not do.
		{`local f = coroutine.wrap(function() return pcall(function() return coroutine.yield(1) end) end) return f(), f(7)`, "1|true|7"},
		{`local f = coroutine.wrap(function() return setmetatable({}, {__index = function(_, k) return coroutine.yield(k) end}).key end)
		  return f(), f("v")`, "key|v"},
		{`local f = coroutine.wrap(function() for v in function(_, i) return coroutine.yield("it") end do return v end end)
		  return f(), f("v")`, "it|v"},
		{`local f = coroutine.wrap(function() local t = {2, 1} table.sort(t, function(a, b) coroutine.yield("cmp") return a < b end) return t[1] end)
		  local v repeat v = f() until v ~= "cmp" return v`, "1"},
		{`local f = coroutine.wrap(function() return (("ab"):gsub(".", function(c) return coroutine.yield(c) end)) end)
		  return f(), f("x"), f("y")`, "a|b|xy"},
		{`local f = coroutine.wrap(function() return ("a" .. setmetatable({}, {__concat = function(a) return coroutine.yield(a) end})) end)
		  return f(), f("z")`, "a|z"},
		{`local function nest(n) if n == 0 then return "deep" end return coroutine.wrap(nest)(n - 1) end return nest(20)`, "deep"},
		{`local function nest(n) return coroutine.wrap(nest)(n + 1) end return pcall(nest, 0)`,
			"false|main.lua:1: stack overflow (coroutines nested too deep)"},
		{`local n = 0 for i = 1, 3000 do n = n + coroutine.wrap(function() return 1 end)() end return n`, "3000"},
		{`local keep = {} for i = 1, 5000 do keep[i] = coroutine.create(print) end`,
			"error: memory limit: too many coroutines in one call; let them end"},
	})
}

// spec: BOX-1 coroutine (which ends with its call)
func TestCoroutinesEndWithTheirCall(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	got, err := run(t, vm, `
		trail = {}
		co = coroutine.create(function()
			pcall(function() coroutine.yield(1) trail[#trail + 1] = "ran on" end)
			trail[#trail + 1] = "caught"
		end)
		fresh = coroutine.create(print)
		wrapped = coroutine.wrap(function() coroutine.yield() trail[#trail + 1] = "ran on" end)
		coroutine.resume(co) wrapped()
		function later()
			local a, b = coroutine.resume(co)
			local c, d = coroutine.resume(fresh)
			local e, f = pcall(wrapped)
			return a, b, c, d, e, f, coroutine.status(co), #trail
		end
		return later`)
	if err != nil {
		t.Fatal(err)
	}
	if len(vm.cos) != 0 {
		t.Error("coroutines are left")
	}
	got, err = vm.Call(nil, got[0])
	const gone = "false|cannot resume dead coroutine"
	if want := gone + "|" + gone + "|false|main.lua:13: cannot resume dead coroutine|dead|0"; err != nil || show(got) != want {
		t.Errorf("got %s %v\nwant %s", show(got), err, want)
	}
}

// A platform function that called back into Lua is not left half done by a yield.
func TestNoYieldAcrossPlatformCalls(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	vm.SetGlobal("platform", vm.L.NewFunction(func(L *lua.LState) int {
		out, err := vm.Call(nil, L.Get(1))
		if err != nil {
			Raise(L, err)
		}
		return pushAll(L, out)
	}))
	got, err := run(t, vm, `local f = coroutine.wrap(function() return pcall(platform, coroutine.yield) end) return f()`)
	if err != nil || !strings.Contains(show(got), "attempt to yield across a platform function") {
		t.Fatal(show(got), err)
	}
	// Within the callback, coroutines of its own are fine.
	got, err = run(t, vm, `return coroutine.wrap(function()
		return platform(function() local g = coroutine.wrap(function() coroutine.yield(1) end) return g() end) end)()`)
	if err != nil || show(got) != "1" {
		t.Fatal(show(got), err)
	}
}

func TestStackOverflowIsClean(t *testing.T) {
	for _, src := range []string{
		`local function f() return 1 + f() end f()`,
		`local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. "x"] end return t.a`,
		`local function f() pcall(f) error("up") end f()`,
		`local function f(...) return 1 + f(1, ...) end f()`,
		`local t = {} for i = 1, 6999 do t[i] = i end local function f(...) return f(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...) end f(unpack(t))`,
		`local t = {} for i = 1, 6000 do t[i] = i end local function f(...) return 1 + f(unpack(t)) end f()`,
		`local t = {} for i = 1, 6999 do t[i] = i end local function f(n, ...) if n == 0 then return f(...) end return 1 + f(n - 1, unpack(t)) end f(30)`,
		`coroutine.wrap(function() local function f() return 1 + f() end f() end)()`,
		`local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) tostring(t)`,
		`local function f() return (("a"):gsub("a", f)) end f()`,
		`local function f() table.sort({1, 2}, f) end f()`,
		`local t = {} for i = 1, 100 do t[i] = -i end local function less(a, b) table.sort(t, less) return a < b end table.sort(t, less)`,
		`local function less() coroutine.wrap(function() table.sort({1, 2}, less) end)() end table.sort({1, 2}, less)`,
		`local function less() pcall(table.sort, {1, 2}, less) error("up") end table.sort({1, 2}, less)`,
		`local mt = {} mt.__lt = function(a, b) table.sort({a, b}) return true end table.sort({setmetatable({}, mt), setmetatable({}, mt)})`,
		`local t = setmetatable({}, {__index = function(t, k) return (k:gsub(".", t)) end}) return ("a"):gsub("a", t)`,
		`local t = setmetatable({}, {__index = function(t, k) return rawget(t, k) or t[k] end}) return t.a`,
		`local t = setmetatable({}, {__newindex = function(t, k, v) t[k] = v end}) t.a = 1`,
		`local t = setmetatable({}, {__tostring = function(t) return ("%s"):format(tostring(t)) .. "x" end}) print(t)`,
		`local t = setmetatable({}, {__call = function(t) return 1 + t() end}) t()`,
		`local t = setmetatable({}, {__concat = function(a, b) return a .. b .. "" end}) return t .. t`,
		`local t = setmetatable({}, {__eq = function(a, b) return not (a == b) end}) return t == setmetatable({}, getmetatable(t))`,
	} {
		vm := newVM(t)
		_, err := run(t, vm, src)
		if err == nil || errors.Is(err, ErrInternal) {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if m := err.Error(); !strings.Contains(m, "overflow") && !strings.Contains(m, "budget") && !strings.Contains(m, "up") {
			t.Errorf("%s: %v", src, err)
		}
		// The VM goes on.
		if got, err := run(t, vm, `local n = 0 local f = function() n = n + 1 end pcall(f) f() return n`); err != nil || show(got) != "2" {
			t.Errorf("after %s: %s %v", src, show(got), err)
		}
	}
}
