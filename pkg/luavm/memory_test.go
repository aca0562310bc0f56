package luavm

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// spec: BOX-3 a string an operation builds is capped
func TestStringsAreCapped(t *testing.T) {
	for _, src := range []string{
		`local s = "x" for i = 1, 40 do s = s .. s end`,
		`local s = "x" for i = 1, 40 do s = s .. 1 .. s .. "y" end`,
		`return ("x"):rep(1e9)`,
		`return ("x"):rep(2^53)`,
		`return ("x"):rep(1e6):rep(1e6)`,
		`local s = ("x"):rep(1e6) return ("%s%s"):format(s:rep(10), s:rep(10))`,
		`local s = ("%q"):format(("x"):rep(16777216))`,
		`local s = ("x"):rep(1e6) return s:gsub("x", ("y"):rep(1000))`,
		`local s = ("x"):rep(1e6) return s:gsub(".*", ("%0"):rep(100))`,
		`local s = ("x"):rep(1e6) return s:gsub("x", function() return ("y"):rep(100) end)`,
		`local s = ("x"):rep(1e6) return s:gsub("x", { x = ("y"):rep(100) })`,
		`local s = ("x"):rep(10) return s:gsub("x", { x = ("y"):rep(2e6) })`,
		`local s = ("x"):rep(1e5) return s:gsub("()x", setmetatable({}, { __index = function(_, k) return ("y"):rep(1000) end }))`,
		`local t = {} local s = ("x"):rep(1e6) for i = 1, 20 do t[i] = s end return table.concat(t)`,
		`local t = {} for i = 1, 20 do t[i] = "" end return table.concat(t, ("x"):rep(1e6))`,
		`local s = ("x"):rep(16777216) error(s)`,
		`local s = ("x"):rep(16777216) print(s)`,
	} {
		vm := newVM(t)
		_, err := run(t, vm, src)
		if !errors.Is(err, ErrMemory) || !strings.HasPrefix(err.Error(), "memory limit: ") {
			t.Errorf("%s: %.100v", src, err)
		}
	}
	vm := New(Options{MaxString: 10})
	defer vm.Close()
	if got, err := run(t, vm, `return ("x"):rep(10), pcall(string.rep, "x", 11)`); err != nil ||
		show(got) != "xxxxxxxxxx|false|memory limit: a string over 10 bytes; build it in parts" {
		t.Error(show(got), err)
	}
}

// One store under a far key would fill a table with nils up to it.
func TestFarKeysAreCharged(t *testing.T) {
	for _, src := range []string{
		`for i = 1, 100 do local t = {} local k = 2e6 t[k] = 1 end`,
		`for i = 1, 100 do local t = {} t[2000000] = 1 end`,
		`for i = 1, 100 do local t = {[2000000] = 1} end`,
		`for i = 1, 20 do local t = {} rawset(t, 2000000, 1) end`,
		`for i = 1, 100 do table.insert({}, 2000000, 1) end`,
		`for i = 1, 100 do local t, u = {} t[2000000], u = 1, 2 end`,
	} {
		vm := newVM(t)
		m := NewMeter(context.Background(), 1_500_000)
		_, err := vm.Run(m, compile(t, src))
		if _, bytes := m.Spent(); !errors.Is(err, ErrBudget) || bytes < 30<<20 {
			t.Errorf("%s: %v, %d bytes", src, err, bytes)
		}
	}
	check(t, []luaCase{
		{`local t = {} t[67108864] = 1 t[1e9] = 2 t[1700000000] = 3 local n = 0 for _ in pairs(t) do n = n + 1 end return n, #t`, "3|0"},
		{`local t = {} for i = 1000, 1, -1 do t[i] = i end return #t, t[500]`, "1000|500"},
		{`local t = {} local i = 100 t[i] = 1 t[i] = nil return #t`, "0"},
	})
	vm := newVM(t)
	_, err := vm.Run(NewMeter(context.Background(), 1<<40), compile(t, `local t = {} t[2097151] = 1 t[#t + 1] = 2`))
	if !errors.Is(err, ErrMemory) {
		t.Errorf("an array past the array part: %v", err)
	}
}

// spec: BOX-3 the heap watch cuts the call that has spent the most
func TestHeapWatch(t *testing.T) {
	defer WatchHeap(0)
	for _, src := range []string{
		`local t = {} while true do t[#t + 1] = {1, 2, 3} end`,
		`local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end`,
		`local t = {} while true do t[#t + 1] = coroutine.create(print) if #t == 4000 then coroutine.yield() end end`,
		`local t = {} while true do local k = 1000000 t[#t + 1] = {[k] = 1} end`,
		`local t = {} while true do pcall(function() while true do t[#t + 1] = {x = 1} end end) end`,
	} {
		vm := newVM(t)
		runtime.GC()
		WatchHeap(heapBytes() + 32<<20)
		_, err := vm.Run(NewMeter(context.Background(), 1<<40), compile(t, `coroutine.wrap(function() `+src+` end)()
			while true do end`))
		WatchHeap(0)
		if !errors.Is(err, ErrMemory) || err.Error() != ErrMemory.Error() {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestHeapWatchSparesTheSmall(t *testing.T) {
	defer WatchHeap(0)
	big := New(Options{})
	defer big.Close()
	started, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	big.SetGlobal("step", big.L.NewFunction(func(L *lua.LState) int {
		once.Do(func() { close(started) })
		return 0
	}))
	runtime.GC()
	WatchHeap(heapBytes() + 64<<20)
	go func() {
		defer close(end)
		_, err := big.Run(NewMeter(context.Background(), 1<<40), compile(t, `local t = {} while true do t[#t + 1] = {{}, {}} step() end`))
		if !errors.Is(err, ErrMemory) {
			t.Errorf("the big one: %v", err)
		}
	}()
	<-started
	vm := newVM(t)
	for running := true; running; {
		if _, err := vm.Run(NewMeter(context.Background(), 1e6), compile(t, `local s = 0 for i = 1, 1000 do s = s + #(i .. "x") end`)); err != nil {
			t.Errorf("the small one: %v", err)
		}
		select {
		case <-end:
			running = false
		default:
		}
	}
	heap.mu.Lock()
	defer heap.mu.Unlock()
	if len(heap.running) != 0 {
		t.Error("meters are left")
	}
}
