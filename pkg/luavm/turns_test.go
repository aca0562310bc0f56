package luavm

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// turnsOf gives long calls n turns, for this test.
func turnsOf(t *testing.T, n int) {
	before := turns
	turns = make(chan struct{}, n)
	t.Cleanup(func() { turns = before })
}

const forLong = `for i = 1, 200000 do end `

// A long call has a turn while it runs and at no other time: not when it is short, waits, calls with another meter or has
// ended, in whatever way.
func TestLongCallsHaveTurns(t *testing.T) {
	turnsOf(t, 1)
	vm := New(Options{})
	defer vm.Close()
	var got []int
	vm.SetGlobal("look", vm.L.NewFunction(func(*lua.LState) int {
		got = append(got, len(turns))
		return 0
	}))
	vm.SetGlobal("wait", vm.L.NewFunction(func(*lua.LState) int {
		vm.Meter().Done()
		return 0
	}))
	vm.SetGlobal("work", vm.L.NewFunction(func(*lua.LState) int {
		vm.Meter().EndTurn()
		return 0
	}))
	vm.SetGlobal("nested", vm.L.NewFunction(func(L *lua.LState) int {
		ctx, cancel := context.WithTimeout(vm.Meter(), time.Minute)
		defer cancel()
		if _, err := vm.Call(NewMeter(ctx, 10_000_000), L.Get(1)); err != nil {
			Raise(L, err)
		}
		return 0
	}))
	for _, c := range []struct {
		src  string
		want []int
	}{
		{`look()`, []int{0}},
		{forLong + `look()`, []int{1}},
		{`("x"):rep(8e6) look()`, []int{1}},
		{`("a"):rep(1500):find(".-b") look()`, []int{1}},
		{forLong + `look() wait() look() ` + forLong + `look()`, []int{1, 0, 1}},
		{forLong + `look() work() look() ` + forLong + `look()`, []int{1, 0, 1}},
		{forLong + `nested(function() look() ` + forLong + `look() end) look() ` + forLong + `look()`, []int{0, 1, 0, 1}},
		{`coroutine.wrap(function() ` + forLong + `look() end)() look()`, []int{1, 1}},
		{`pcall(function() ` + forLong + `error("x") end) look()`, []int{1}},
		{forLong + `error("x")`, nil},
		{`while true do end`, nil},
	} {
		got = nil
		_, _ = vm.Run(NewMeter(context.Background(), 5_000_000), compile(t, c.src))
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.src, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.src, got, c.want)
				break
			}
		}
		if len(turns) != 0 {
			t.Fatalf("%s: it still has its turn", c.src)
		}
	}
}

// A long call waits for its turn until its deadline; short ones do not need any.
func TestLongCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turnsOf(t, 1)
		vm := New(Options{})
		defer vm.Close()
		turns <- struct{}{}
		run := func(src string) error {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := vm.Run(NewMeter(ctx, 10_000_000), compile(t, src))
			return err
		}
		began := time.Now()
		if err := run(`for i = 1, 1000 do end`); err != nil || time.Since(began) != 0 {
			t.Errorf("a short call: %v after %v", err, time.Since(began))
		}
		if err := run(forLong); !errors.Is(err, ErrTimeout) || time.Since(began) != 10*time.Second {
			t.Errorf("a long call without a turn: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { <-turns })
		began = time.Now()
		if err := run(forLong); err != nil || time.Since(began) != time.Second {
			t.Errorf("a long call whose turn comes: %v after %v", err, time.Since(began))
		}
		// What it holds may serve others meanwhile.
		turns <- struct{}{}
		m, waits := NewMeter(context.Background(), 10_000_000), 0
		m.WaitWith(func(wait func()) { waits++; <-turns; wait() })
		if _, err := vm.Run(m, compile(t, forLong)); err != nil || waits != 1 || len(turns) != 0 {
			t.Errorf("a long call that waits with others: %v, %d waits, %d turns", err, waits, len(turns))
		}
	})
}
