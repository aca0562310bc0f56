package value

import (
	"encoding/json"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"weir/pkg/luavm"
)

// genValue draws any Lua value that crosses and comes back as it was.
func genValue(L *lua.LState, depth int) *rapid.Generator[lua.LValue] {
	scalar := []*rapid.Generator[lua.LValue]{
		rapid.Map(rapid.Bool(), func(b bool) lua.LValue { return lua.LBool(b) }),
		rapid.Map(rapid.Float64(), func(f float64) lua.LValue { return lua.LNumber(f) }),
		rapid.Map(rapid.Int64Range(-MaxInteger, MaxInteger), func(i int64) lua.LValue { return lua.LNumber(i) }),
		rapid.Map(rapid.String(), func(s string) lua.LValue { return lua.LString(s) }),
	}
	if depth == 0 {
		return rapid.OneOf(scalar...)
	}
	nested := genValue(L, depth-1)
	array := rapid.Map(rapid.SliceOfN(rapid.OneOf(nested, rapid.Just[lua.LValue](luavm.Null)), 0, 5),
		func(items []lua.LValue) lua.LValue {
			t := luavm.NewArray(L)
			for _, v := range items {
				t.Append(v)
			}
			return t
		})
	object := rapid.Map(rapid.MapOfN(rapid.String(), nested, 0, 5), func(m map[string]lua.LValue) lua.LValue {
		t := L.NewTable()
		for k, v := range m {
			t.RawSetString(k, v)
		}
		return t
	})
	return rapid.OneOf(append(scalar, array, object, array, object, array, object)...)
}

// same compares deeply.
func same(a, b lua.LValue) bool {
	x, ok := a.(*lua.LTable)
	y, ok2 := b.(*lua.LTable)
	if !ok || !ok2 {
		return a == b
	}
	equal, n := true, 0
	x.ForEach(func(k, v lua.LValue) {
		n++
		equal = equal && same(v, y.RawGet(k))
	})
	y.ForEach(func(_, _ lua.LValue) { n-- })
	empty, _ := x.Next(lua.LNil)
	return equal && n == 0 && (empty != lua.LNil || x.Metatable == y.Metatable)
}

// spec: VAL-1, VAL-2, VAL-3, VAL-4, VAL-6
func TestRoundTrip(t *testing.T) {
	L := newState(t)
	values := rapid.SliceOfN(genValue(L, 3), 3, 12)
	rapid.Check(t, func(t *rapid.T) {
		v := luavm.NewArray(L)
		for _, item := range values.Draw(t, "values") {
			v.Append(item)
		}
		data, err := Encode(v, "value", 0)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			t.Fatalf("invalid JSON: %s", data)
		}
		back, err := Decode(L, data, "value")
		if err != nil || !same(v, back) {
			t.Fatalf("%s comes back as %v, %v", data, back, err)
		}
		again, err := Encode(back, "value", len(data))
		if err != nil || string(again) != string(data) {
			t.Fatalf("%s encodes again as %s, %v", data, again, err)
		}
		plain, err := Canonical(data, "value", len(data))
		if err != nil || string(plain) != string(data) {
			t.Fatalf("%s has the canonical form %s, %v", data, plain, err)
		}
	})
}

// spec: VAL-3
func TestListRoundTrip(t *testing.T) {
	L := newState(t)
	lists := rapid.SliceOfN(rapid.OneOf(genValue(L, 1), rapid.Just(lua.LNil)), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		vs := lists.Draw(t, "list")
		data, err := EncodeList(vs, "argument", 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeList(L, data, "argument")
		if err != nil || len(back) != len(vs) {
			t.Fatalf("%s: %v, %v", data, back, err)
		}
		for i := range vs {
			if !same(vs[i], back[i]) {
				t.Fatalf("%s: position %d comes back as %v", data, i+1, back[i])
			}
		}
	})
}
