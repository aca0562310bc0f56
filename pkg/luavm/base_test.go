package luavm

import (
	"context"
	"errors"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

func TestBaseFunctions(t *testing.T) {
	check(t, []luaCase{
		{`tostring(1), tostring(1.5), tostring(1e15), tostring(2^53), tostring(1/3), tostring(-0.1)`,
			"1|1.5|1000000000000000|9007199254740992|0.33333333333333|-0.1"},
		{`tostring(1/0), tostring(-1/0), tostring(0/0), tostring(1e100)`, "inf|-inf|nan|1e+100"},
		{`tonumber("10"), tonumber(" 0x1F "), tonumber("1e2"), tonumber("5."), tonumber(".5"), tonumber("-7")`, "10|31|100|5|0.5|-7"},
		{`tonumber("z", 36), tonumber("ff", 16), tonumber("0xff", 16), tonumber("777", 8), tonumber("8", 8)`, "35|255|255|511|nil"},
		{`tonumber(""), tonumber("abc"), tonumber("1 2"), tonumber("1_000"), tonumber("nan"), tonumber("inf"), tonumber({})`,
			"nil|nil|nil|nil|nil|nil|nil"},
		{`tonumber(10, 2), tonumber("1e1", 16)`, "2|481"},
		{`select("#"), select("#", nil, nil), select(2, "a", "b", "c")`, "0|2|b|c"},
		{`select(-1, "a", "b")`, "b"},
		{`select(0)`, "error: main.lua:1: bad argument #1 to 'select' (index out of range)"},
		{`unpack({1, 2, 3}, 2)`, "2|3"},
		{`unpack({1, 2}, 1, 3)`, "1|2|nil"},
		{`unpack({}, 1, 1e7)`, "error: main.lua:1: too many results to unpack"},
		{`select("#", unpack({}, 1, 7000))`, "7000"},
		{`type(nil), type(1), type("x"), type({}), type(print), type(coroutine.create(print))`, "nil|number|string|table|function|thread"},
		{`type()`, "error: main.lua:1: bad argument #1 to 'type' (value expected)"},
		{`assert(1, 2)`, "1|2"},
		{`assert(false)`, "error: main.lua:1: assertion failed!"},
		{`assert(nil, "boom")`, "error: boom"},
		{`pcall(error, {})  == false`, "true"},
		{`pcall(error, "x", 0)`, "false|x"},
		{`pcall(function() error("boom") end)`, "false|main.lua:1: boom"},
		{`pcall(function() error() end)`, "false|nil"},
		{"local function f() error('up', 2) end\nlocal ok, e = pcall(function()\nf()\nend)\nreturn e", "main.lua:3: up"},
		{`pcall(nil)`, "false|main.lua:1: attempt to call a nil value"},
		{`return pcall(function(...) return ... end, 1, nil, 3)`, "true|1|nil|3"},
		{`pcall(function() end)`, "true"},
		{`return xpcall(function() error("a", 0) end, function(m) return m .. "!" end)`, "false|a!"},
		{`return xpcall(function() return 1, 2 end, print)`, "true|1|2"},
		{`xpcall(function() error("a", 0) end, function(m) error("b", 0) end)`, "false|b"},
		{`pcall(pcall)`, "false|main.lua:1: bad argument #1 to '?' (value expected)"},
		{`local t = setmetatable({}, {__call = function(self, a) return a + 1 end}) return pcall(t, 1)`, "true|2"},
		{`rawget({5}, 1), rawequal("a", "a"), rawset({}, 1, 2)[1]`, "5|true|2"},
		{`next({}), next({7})`, "nil|1|7"},
		{`local s = 0 for i, v in ipairs({1, 2, nil, 4}) do s = s + v end return s`, "3"},
		{`local s = 0 for k, v in pairs({1, 2, a = 4}) do s = s + v end return s`, "7"},
		{`getmetatable(setmetatable({}, {__metatable = "no"}))`, "no"},
		{`setmetatable(setmetatable({}, {__metatable = "no"}), {})`, "error: main.lua:1: cannot change a protected metatable"},
		{`setmetatable("", {})`, "error: main.lua:1: bad argument #1 to 'setmetatable' (table expected, got string)"},
		{`return tostring(setmetatable({}, {__tostring = function() return "T" end}))`, "T"},
		{`_VERSION, _G`, "Lua 5.1|nil"},
	})
}

func TestOperators(t *testing.T) {
	check(t, []luaCase{
		{`"a" .. 1 .. 2.5 .. "b"`, "a12.5b"},
		{`1 .. 2`, "12"},
		{`(("a" .. "b") .. ("c" .. "d"))`, "abcd"},
		{`"x" .. nil`, "error: main.lua:1: attempt to concatenate a nil value"},
		{"local a = 1\nreturn 'x' ..\n {}", "error: main.lua:2: attempt to concatenate a table value"},
		{`local f = function() return "1", "2" end return f() .. f(), "a" .. f()`, "11|a1"},
		{`local function v(...) return "<" .. ... end return v("a", "b")`, "<a"},
		{`local function p(x) x = x .. "!" return x end return p("a")`, "a!"},
		{`local a, b = "x" .. "y" return a, b`, "xy|nil"},
		{`local log = {} local mt = {}
		  mt.__concat = function(a, b)
		    log[#log + 1] = (type(a) == "table" and "T" or a) .. "+" .. (type(b) == "table" and "T" or b)
		    return setmetatable({}, mt)
		  end
		  local t = setmetatable({}, mt)
		  local _ = "a" .. "b" .. t .. "c" .. "d"
		  return unpack(log)`, "T+cd|b+T|a+T"},
		{`local t = setmetatable({}, {__concat = function(a, b) return "cat" end}) return t .. 1, 1 .. t, t .. t`, "cat|cat|cat"},
		{`local function p(x) x = x and x .. "!" or (x .. "?") return x end return p("a")`, "a!"},
		{`local function p(x) x = (tostring(x .. 1)) return x end return p("a")`, "a1"},
		{`local function p(x, y) y, x = y .. "y", y .. x return x, y end return p("a", "b")`, "ba|by"},
		{`local function p(x, y) x, y = y .. "y", y .. x return x, y end return p("a", "b")`, "by|ba"},
		{`local function p(x) x = #(x .. "!") + (x .. "1") return x end return p("1")`, "13"},
		{`local function p(...) local x = ... x = x .. "!" return x end return p("a")`, "a!"},
		{`local function p(x) local f = function() x = x .. "!" end f() return x end return p("a")`, "a!"},
		{`local function p(x) x = {x .. 1, k = x .. 2} return x[1], x.k end return p("a")`, "a1|a2"},
		{`local function p(x) x = not (x .. "") return x end return p("a")`, "false"},
		{`local function p(x) x = (x .. "k") == "ak" return x end return p("a")`, "true"},
		{`local function p(x) x = x ~= nil and (x .. "k") return x end return p("a")`, "ak"},
		{`local function p(x) x = ({a = 5})[x .. ""] return x end return p("a")`, "5"},
		{`local t = {} t[1], t[2], t.x = 1, 2, 3 return t[1], t[2], t.x`, "1|2|3"},
		{`local t, i = {10, 20}, 1 t[i], t[i + 1] = t[i + 1], t[i] return t[1], t[2]`, "20|10"},
		{`local i, t = 1, {} i, t[i] = 2, "v" return i, t[1], t[2]`, "2|v|nil"},
		{`local t = {} local function k() return "a", "b" end t[k()] = k() return t.a, t.b`, "a|nil"},
		{`local t = {[1 + 1] = "x", [(function() return "k" end)()] = "y"} return t[2], t.k`, "x|y"},
		{`local t = {} t[nil] = 1`, "error: main.lua:1: table index is nil"},
		{`local t = {} t[0/0] = 1`, "error: main.lua:1: table index is NaN"},
		{"local t\n\nt['a' .. 1] = 1", "error: main.lua:3: attempt to index a non-table object(nil) with key 'a1'"},
		{`local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end}) local k = 5 t[k] = 4 return t[5]`, "8"},
		{`#"abc", #{1, 2, 3}, -"2", "10" + 5, 7 % 3, -7 % 3, 2 ^ 10`, "3|3|-2|15|1|2|1024"},
		{`"a" < "b", 1 == 1.0, "1" == 1, not nil`, "true|true|false|true"},
	})
}

// A chain longer than the registers can hold is one call all the same.
func TestLongConcatChain(t *testing.T) {
	vm := newVM(t)
	src := `local f = function() return "y", "z" end return "x"` + strings.Repeat(` .. "x" .. f()`, 1000)
	got, err := run(t, vm, src)
	if err != nil || show(got) != "x"+strings.Repeat("xy", 1000) {
		t.Fatalf("got %d bytes, %v", len(show(got)), err)
	}
	_, err = run(t, vm, `return "x"`+strings.Repeat(` .. "x"`, 100)+` .. nil`)
	if err == nil || err.Error() != "main.lua:1: attempt to concatenate a nil value" {
		t.Fatal(err)
	}
}

// gopher-lua closes the upvalues of all frames when an error is raised; ours stay in step.
func TestUpvaluesSurviveCaughtErrors(t *testing.T) {
	check(t, []luaCase{
		{`local n = 0
		  local function inc() n = n + 1 end
		  pcall(function() inc() error("x") end)
		  inc()
		  return n`, "2"},
		{`local saved
		  pcall(function() local x = 1 saved = function() x = x + 1 return x end error("e") end)
		  local junk = {1, 2, 3}
		  return saved(), saved()`, "2|3"},
		{`local n = 0
		  local co = coroutine.wrap(function() local m = 10 local f = function() m = m + 1 n = n + 1 end
		    pcall(function() f() error("x") end) f() coroutine.yield(m) f() return m end)
		  local a = co() local b = co() return a, b, n`, "12|13|3"},
		{`local n = 0
		  local function inc() n = n + 1 end
		  local t = setmetatable({}, {__index = function() inc() error("x") end})
		  pcall(function() return t.a end)
		  xpcall(function() return t.a end, function() inc() end)
		  inc()
		  return n`, "4"},
	})
}

func TestErrorsAreClean(t *testing.T) {
	vm := newVM(t)
	_, err := run(t, vm, "\n\nerror('boom')")
	var e *Error
	if !errors.As(err, &e) || err.Error() != "main.lua:3: boom" || e.Cause != nil {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(e.Trace, "main.lua:3") {
		t.Errorf("trace %q", e.Trace)
	}
	_, err = run(t, vm, "error({code = 5})")
	if !errors.As(err, &e) || e.Value.(*lua.LTable).RawGetString("code") != lua.LNumber(5) {
		t.Fatalf("got %v", err)
	}
	if err.Error() != "(error object is a table value)" {
		t.Error(err)
	}
}

func TestRaise(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	boom := errors.New("overloaded: try again")
	vm.SetGlobal("boom", vm.L.NewFunction(func(L *lua.LState) int {
		Raise(L, boom)
		return 0
	}))
	vm.SetGlobal("through", vm.L.NewFunction(func(L *lua.LState) int {
		_, err := vm.Call(nil, L.Get(1))
		Raise(L, err)
		return 0
	}))
	vm.Freeze()
	got, err := run(t, vm, `return pcall(boom)`)
	if err != nil || show(got) != "false|overloaded: try again" {
		t.Fatal(show(got), err)
	}
	for _, src := range []string{`boom()`, `coroutine.wrap(boom)()`, `through(boom)`, `through(function() boom() end)`,
		`for _ in boom do end`, `local x = ("a"):gsub("a", boom)`, `return setmetatable({}, {__index = boom}).x`} {
		_, err = run(t, vm, src)
		if !errors.Is(err, boom) || err.Error() != boom.Error() {
			t.Errorf("%s: %v", src, err)
		}
	}
	_, err = run(t, vm, `through(function() error("mine") end)`)
	if err == nil || err.Error() != "main.lua:1: mine" {
		t.Error(err)
	}
}

func TestGoPanicsStayInside(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	vm.SetGlobal("bug", vm.L.NewFunction(func(L *lua.LState) int {
		var m []int
		return m[L.GetTop()]
	}))
	vm.Freeze()
	for _, src := range []string{`bug()`, `pcall(bug) return 1`, `coroutine.wrap(bug)()`, `xpcall(bug, print)`} {
		_, err := run(t, vm, src)
		if !errors.Is(err, ErrInternal) || !strings.HasPrefix(err.Error(), "internal: ") {
			t.Errorf("%s: %v", src, err)
		}
	}
	if got, err := run(t, vm, `return 1`); err != nil || show(got) != "1" {
		t.Error("the VM does not go on:", err)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []luaCase{
		{"x = = 1", "main.lua:1: syntax error near '='"},
		{"\n\nlocal function f(", "main.lua:3: syntax error near '<eof>'"},
		{"x = 'abc", "main.lua:1: unterminated string near '<eof>'"},
		{"break", "main.lua:1: no loop to break"},
		{"x = " + strings.Repeat("not ", 20000) + "1", "main.lua:1: expressions or blocks are nested too deep"},
	} {
		_, err := Compile("main.lua", []byte(c.src))
		var se *SyntaxError
		if !errors.As(err, &se) || err.Error() != c.want {
			t.Errorf("%.40q: got %v, want %s", c.src, err, c.want)
		}
	}
}

func TestChunksAreShared(t *testing.T) {
	c := compile(t, `local n = 0 for i = 1, 1000 do n = n + #("x" .. i) end return n`)
	done := make(chan string)
	for range 4 {
		go func() {
			vm := New(Options{})
			defer vm.Close()
			got, err := vm.Run(NewMeter(context.Background(), 1e6), c)
			if err != nil {
				done <- err.Error()
				return
			}
			done <- show(got)
		}()
	}
	for range 4 {
		if got := <-done; got != "3893" {
			t.Error(got)
		}
	}
}

func TestPrint(t *testing.T) {
	var out []string
	vm := New(Options{Print: func(s string) { out = append(out, s) }})
	defer vm.Close()
	if _, err := run(t, vm, `print("a", 1, nil, true) print()`); err != nil {
		t.Fatal(err)
	}
	if strings.Join(out, "\n") != "a\t1\tnil\ttrue\n" {
		t.Errorf("%q", out)
	}
}

func TestArrayMark(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	vm.SetGlobal("array", vm.L.NewFunction(func(L *lua.LState) int {
		L.Push(NewArray(L))
		return 1
	}))
	vm.SetGlobal("marked", vm.L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LBool(L.CheckTable(1).Metatable == lua.LValue(ArrayMark)))
		return 1
	}))
	vm.SetGlobal("null", Null)
	for _, c := range []luaCase{
		{`local a = array() return marked(a), getmetatable(a)`, "true|nil"},
		{`local a = array() a[1] = 5 a[#a + 1] = 6 return marked(a), #a, a[2]`, "true|2|6"},
		{`local a = array() table.insert(a, 1) return marked(a)`, "true"},
		{`local a = array() a.x = 1 return marked(a), a.x`, "false|1"},
		{`local a = array() local k = "x" a[k] = 1 return marked(a), a.x`, "false|1"},
		{`local a = array() rawset(a, "x", 1) return marked(a), a.x`, "false|1"},
		{`local a = array() rawset(a, 1, 1) return marked(a)`, "true"},
		{`local a = array() local mt = {} setmetatable(a, mt) return marked(a), getmetatable(a) == mt`, "false|true"},
		{`local a = array() a.x = nil return marked(a)`, "true"},
		{`return tostring(null), type(null), null == null, getmetatable(null)`, "null|userdata|true|nil"},
	} {
		got, err := run(t, vm, c.src)
		if err != nil || show(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.src, show(got), err, c.want)
		}
	}
}
