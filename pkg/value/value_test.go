package value

import (
	"errors"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// handle stands for an object handle, userdata that names its kind.
type handle struct{}

func (handle) LuaKind() string { return "handle" }

// newState gives a Lua state with what the tests' snippets use: null and
// array() for json.null and json.array(), and handle and raw userdata.
func newState(t testing.TB) *lua.LState {
	t.Helper()
	L := lua.NewState()
	t.Cleanup(L.Close)
	L.SetGlobal("null", luavm.Null)
	L.SetGlobal("array", L.NewFunction(func(L *lua.LState) int {
		L.Push(luavm.NewArray(L))
		return 1
	}))
	named, raw := L.NewUserData(), L.NewUserData()
	named.Value = handle{}
	L.SetGlobal("handle", named)
	L.SetGlobal("raw", raw)
	return L
}

// eval gives the values of a Lua expression list.
func eval(t testing.TB, L *lua.LState, code string) []lua.LValue {
	t.Helper()
	top := L.GetTop()
	if !strings.Contains(code, "return") {
		code = "return " + code
	}
	if err := L.DoString(code); err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	var vs []lua.LValue
	for i := top + 1; i <= L.GetTop(); i++ {
		vs = append(vs, L.Get(i))
	}
	L.SetTop(top)
	return vs
}

// wantError checks that err is an *Error with exactly this start.
func wantError(t testing.TB, what string, err error, want string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s:\n got %v\nwant %s", what, err, want)
	}
}
