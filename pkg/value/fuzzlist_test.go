package value

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// Positions are what a list's elements are alone, null is nil, and an error names the position.
// spec: VAL-3, VAL-1
func FuzzDecodeList(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte("[1," + s + "]"))
		f.Add([]byte("[{\"a\":[" + s + "]}," + s + "]"))
	}
	for _, s := range []string{"[]", "[null,null]", "{}", "[1", "[1]]", "", "[" + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "]"} {
		f.Add([]byte(s))
	}
	L := newState(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := DecodeList(L, data, "argument")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "bad value: ") || !strings.Contains(err.Error(), "argument") {
				t.Fatalf("%q: the error names no place: %v", data, err)
			}
			return
		}
		out, err := EncodeList(list, "argument", 0)
		if err != nil {
			t.Fatalf("%q is read, but not written: %v", data, err)
		}
		again, err := DecodeList(L, out, "argument")
		if err != nil || len(again) != len(list) {
			t.Fatalf("%q has %d positions, and %s %d, %v", data, len(list), out, len(again), err)
		}
		for i, v := range list {
			if v == lua.LNil != (again[i] == lua.LNil) || v != lua.LNil && !same(v, again[i]) {
				t.Fatalf("%q: position %d is %v, then %v", data, i+1, v, again[i])
			}
			if _, ok := v.(*lua.LUserData); ok {
				t.Fatalf("%q: position %d is no plain value: %v", data, i+1, v)
			}
		}
	})
}
