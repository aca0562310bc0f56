package luavm

import (
	"context"
	"errors"
	"testing"
)

// FuzzRun compiles and runs anything with a small budget: it must neither panic nor hang.
func FuzzRun(f *testing.F) {
	for _, src := range runaways {
		f.Add(src)
	}
	for _, src := range []string{
		`local a, b = 1, "x" .. 2 a, b = b, a return a .. b`,
		`local t = {f = function(self, ...) return ... end} return t:f(1, 2, select("#", t:f()))`,
		`for i, v in ipairs({1, 2}) do local x = v .. i if x then goto done end end ::done::`,
		`local function p(x, ...) x = (x .. ...) return x, ... end return p("a", "b", p("c", "d"))`,
		`return pcall(setmetatable, {}, {__index = function(t, k) return t[k .. k] end})`,
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		c, err := Compile("fuzz.lua", []byte(src))
		if err != nil {
			var se *SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		vm := New(Options{MaxString: 1 << 16})
		defer vm.Close()
		vm.Freeze()
		if _, err = vm.Run(NewMeter(context.Background(), 20_000), c); errors.Is(err, ErrInternal) {
			t.Fatal(err)
		}
		if vm.co != nil || vm.depth != 0 || vm.nesting != 0 || vm.guarded != 0 || len(vm.cos) != 0 || vm.cur != vm.L {
			t.Fatal("the call left something behind")
		}
	})
}
