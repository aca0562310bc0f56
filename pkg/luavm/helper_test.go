package luavm

import (
	"context"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// newVM returns a frozen VM that is closed with the test.
func newVM(t testing.TB) *VM {
	t.Helper()
	vm := New(Options{})
	t.Cleanup(vm.Close)
	vm.Freeze()
	return vm
}

func compile(t testing.TB, src string) *Chunk {
	t.Helper()
	c, err := Compile("main.lua", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs src with a budget of ten million instructions.
func run(t testing.TB, vm *VM, src string) ([]lua.LValue, error) {
	t.Helper()
	return vm.Run(NewMeter(context.Background(), defaultBudget), compile(t, src))
}

// show joins results as tostring gives them, with | between.
func show(list []lua.LValue) string {
	var out []string
	for _, v := range list {
		if n, ok := v.(lua.LNumber); ok {
			out = append(out, numberText(n))
		} else {
			out = append(out, v.String())
		}
	}
	return strings.Join(out, "|")
}

// luaCase is an expression list, or a chunk that begins with local, for or return, and what its results, or its error, must be.
type luaCase struct{ src, want string }

func check(t *testing.T, cases []luaCase) {
	t.Helper()
	vm := newVM(t)
	for _, c := range cases {
		src := c.src
		if word, _, _ := strings.Cut(strings.TrimSpace(src), " "); word != "local" && word != "return" && word != "for" {
			src = "return " + src
		}
		got, err := run(t, vm, src)
		text := show(got)
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.src, text, c.want)
		}
	}
}

func str(s string) lua.LValue { return lua.LString(s) }
