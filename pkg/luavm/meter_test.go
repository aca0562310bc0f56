package luavm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// runaways never end by themselves, and try to live on after they were cut.
var runaways = []string{
	`while true do end`,
	`repeat until false`,
	`for i = 1, math.huge do end`,
	`local function f() return f() end f()`,
	`::top:: goto top`,
	`while true do pcall(function() while true do end end) end`,
	`while true do xpcall(function() while true do end end, function() while true do end end) end`,
	`while true do local ok, e = pcall(error, "x") end`,
	`coroutine.wrap(function() while true do end end)()`,
	`while true do coroutine.resume(coroutine.create(function() while true do end end)) end`,
	`local f = coroutine.wrap(function() while true do coroutine.yield() end end) while true do f() end`,
	`while true do pcall(coroutine.wrap(function() pcall(function() while true do end end) end)) end`,
	`local t = setmetatable({}, {__index = function() while true do end end}) while true do pcall(function() return t.x end) end`,
	`local t = setmetatable({}, {__tostring = function() while true do end end}) while true do pcall(tostring, t) end`,
	`local t = setmetatable({}, {__eq = function() while true do end end, __lt = function() while true do end end}) table.sort({t, t, t})`,
	`local t = setmetatable({}, {__concat = function() while true do end end}) return "a" .. t`,
	`local t = setmetatable({}, {__call = function() while true do end end}) pcall(t) t()`,
	`local t = setmetatable({}, {__newindex = function() while true do end end}) local k = "x" t[k] = 1`,
	`table.sort({3, 2, 1}, function(a, b) while true do end end)`,
	`while true do pcall(table.sort, {3, 2, 1}, function(a, b) error("x") end) end`,
	`("x"):gsub("x", function() while true do end end)`,
	`("x"):gsub("x", setmetatable({}, {__index = function() while true do end end}))`,
	`for _ in function() return 1 end do end`,
	`while true do ("x"):rep(100) end`,
	`while true do local s = "" for i = 1, 100 do s = s .. i end end`,
	`local s = ("x"):rep(1000000) while true do s:upper() end`,
	`local s = ("x"):rep(1000000) while true do s:find("y", 1, true) end`,
	`local t = {} while true do t[#t + 1] = 1 end`,
	`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end`,
	`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t) end`,
	`while true do local t = {} local k = 2000000 t[k] = 1 end`,
	`while true do local k = 2000000 local t = {[k] = 1} end`,
	`while true do unpack({}, 1, 6000) end`,
	`while true do coroutine.create(print) end`,
	`while true do print("x") end`,
}

// spec: OBJ-11 past a bounded number of VM instructions a call is cut off, coroutines and string functions included
func TestBudget(t *testing.T) {
	for _, src := range runaways {
		vm := newVM(t)
		out, err := vm.Run(NewMeter(context.Background(), 1_000_000), compile(t, src))
		if strings.Contains(src, "coroutine.create(print)") && errors.Is(err, ErrMemory) {
			continue
		}
		if !errors.Is(err, ErrBudget) || err.Error() != ErrBudget.Error() {
			t.Errorf("%s: %v %v", src, out, err)
		}
	}
}

// spec: OBJ-11 and the time a call may run
func TestDeadlineAndCancel(t *testing.T) {
	gone := errors.New("unavailable: the host stops")
	for _, src := range runaways[:16] {
		vm := newVM(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancelled := vm.L.NewFunction(func(L *lua.LState) int { cancel(gone); return 0 })
		fn, err := vm.Run(nil, compile(t, `local cancel = ... return function(cancel) cancel() `+src+` end`))
		if err != nil {
			t.Fatal(src, err)
		}
		_, err = vm.Call(NewMeter(ctx, 1<<40), fn[0], cancelled)
		if !errors.Is(err, gone) || err.Error() != gone.Error() {
			t.Errorf("%s: %v", src, err)
		}
	}
	past, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	vm := newVM(t)
	if _, err := vm.Run(NewMeter(past, 1000), compile(t, `return 1`)); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
}

// Waiting in Go and a deadline in virtual time, with coroutines in a bubble.
func TestDeadlineWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vm := New(Options{})
		defer vm.Close()
		vm.SetGlobal("wait", vm.L.NewFunction(func(L *lua.LState) int {
			<-vm.Meter().Done()
			return 0
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		start := time.Now()
		m := NewMeter(ctx, 1000)
		_, err := vm.Run(m, compile(t, `local f = coroutine.wrap(function() pcall(wait) coroutine.yield() end) f() while true do end`))
		if !errors.Is(err, ErrTimeout) || !errors.Is(m.Err(), ErrTimeout) || time.Since(start) != 10*time.Second {
			t.Error(err, time.Since(start))
		}
	})
}

// After a cut no Lua code runs on: not a handler, not a metamethod, not another coroutine.
func TestNothingRunsAfterACut(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	cut := errors.New("timeout: test")
	after := 0
	vm.SetGlobal("cut", vm.L.NewFunction(func(L *lua.LState) int { vm.Meter().Cut(cut); return 0 }))
	vm.SetGlobal("after", vm.L.NewFunction(func(L *lua.LState) int { after++; return 0 }))
	vm.Freeze()
	for _, src := range []string{
		`cut() after()`,
		`pcall(cut) after()`,
		`pcall(pcall, pcall, cut) after()`,
		`xpcall(function() cut() return 1 end, function() after() end) after()`,
		`xpcall(cut, after)`,
		`coroutine.resume(coroutine.create(cut)) after()`,
		`coroutine.resume(coroutine.create(function() cut() after() end)) after()`,
		`local f = coroutine.wrap(function() pcall(cut) after() end) pcall(f) after()`,
		`local t = setmetatable({}, {__index = function() cut() after() end}) pcall(function() return t.x end) after()`,
		`local t = setmetatable({}, {__index = cut, __newindex = function() after() end}) t.y = t.x after()`,
		`("a"):gsub("a", function() cut() after() end) after()`,
		`table.sort({2, 1}, function() cut() after() end) after()`,
		`local co = coroutine.wrap(function() pcall(coroutine.yield) after() end) co() cut() co()`,
	} {
		after = 0
		m := NewMeter(context.Background(), 1_000_000)
		_, err := vm.Run(m, compile(t, src))
		if !errors.Is(err, cut) || after != 0 {
			t.Errorf("%s: %v, %d", src, err, after)
		}
	}
}

func TestMeterCounts(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	vm.SetGlobal("work", vm.L.NewFunction(func(L *lua.LState) int {
		vm.Meter().Work(int64(L.CheckInt(1)))
		return 0
	}))
	m := NewMeter(context.Background(), 1_000_000)
	if _, err := vm.Run(m, compile(t, `work(1000) for i = 1, 1000 do end local s = ("x"):rep(3200)`)); err != nil {
		t.Fatal(err)
	}
	if work, bytes := m.Spent(); work < 2100 || work > 2200 || bytes != 3200 {
		t.Error(work, bytes)
	}
	_, err := vm.Run(NewMeter(context.Background(), 1000), compile(t, `work(2000) return 1`))
	if !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
	// The budget is exact for instructions.
	need := func(budget int64) error {
		_, err := vm.Run(NewMeter(context.Background(), budget), compile(t, `for i = 1, 100 do end`))
		return err
	}
	n := int64(0)
	for ; need(n) != nil; n++ {
	}
	if n < 100 || n > 120 {
		t.Error(n)
	}
	if _, err := vm.Run(NewMeter(context.Background(), 0), compile(t, `return 1`)); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
}

func TestNestedCalls(t *testing.T) {
	vm := New(Options{})
	defer vm.Close()
	var inner *Meter
	vm.SetGlobal("same", vm.L.NewFunction(func(L *lua.LState) int {
		out, err := vm.Call(nil, L.Get(1), lua.LNumber(1))
		if err != nil {
			Raise(L, err)
		}
		return pushAll(L, out)
	}))
	vm.SetGlobal("own", vm.L.NewFunction(func(L *lua.LState) int {
		inner = NewMeter(vm.Meter(), 1000)
		out, err := vm.Call(inner, L.Get(1))
		if err != nil {
			L.Push(lua.LString(err.Error()))
			return 1
		}
		return pushAll(L, out)
	}))
	for _, c := range []luaCase{
		{`return same(function(n) return n, n + 1 end)`, "1|2"},
		{`return same(function(n) return same(function(m) return n + m end) end)`, "2"},
		{`return coroutine.wrap(function() return same(function() return coroutine.running() ~= nil end) end)()`, "true"},
		{`return own(function() while true do end end)`, ErrBudget.Error()},
		{`return pcall(same, function() error("x", 0) end)`, "false|x"},
		{`local function f() return same(f) end return pcall(f)`, "false|stack overflow (calls nested too deep)"},
	} {
		got, err := run(t, vm, c.src)
		if err != nil || show(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.src, show(got), err, c.want)
		}
	}
	_, err := vm.Run(NewMeter(context.Background(), 100_000), compile(t, `pcall(same, function() while true do end end) return 1`))
	if !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
}
