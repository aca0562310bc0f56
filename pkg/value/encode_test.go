package value

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

func TestEncode(t *testing.T) {
	L := newState(t)
	for _, tt := range []struct{ lua, want string }{
		// spec: VAL-1
		{`nil`, `null`}, {`true`, `true`}, {`false`, `false`}, {`"text"`, `"text"`}, {`12`, `12`},
		// spec: VAL-2
		{`{}`, `{}`}, {`array()`, `[]`}, {`{array(), {}}`, `[[],{}]`},
		{`{1, "b", false, {c = 1}}`, `[1,"b",false,{"c":1}]`},
		{`{b = 1, a = 2, B = 3, [""] = 4, ["10"] = 5, ["9"] = 6}`, `{"":4,"10":5,"9":6,"B":3,"a":2,"b":1}`},
		{`{[1] = "a", [2] = "b"}`, `["a","b"]`},
		{`local t = {1, 2, 3}; t[3] = nil; return t`, `[1,2]`},
		{`local t = {1, 2}; t[1] = nil; t[2] = nil; return t`, `{}`},
		{`local t = array(); t[1] = 1; t[1] = nil; return t`, `[]`},
		{`local t = {a = 1}; t.a = nil; return t`, `{}`},
		{`local t = {a = 1}; t.a = nil; t[1] = 2; return t`, `[2]`},
		{`local t = {}; for i = 3, 1, -1 do t[i] = i end; return t`, `[1,2,3]`},
		{`setmetatable({a = 1}, {__index = function() error("ran") end, __len = function() error("ran") end})`, `{"a":1}`},
		{`local s = {1}; return {s, s}`, `[[1],[1]]`},
		// spec: VAL-3
		{`null`, `null`}, {`{1, null, 3}`, `[1,null,3]`}, {`{null}`, `[null]`}, {`{a = null, b = 1}`, `{"b":1}`}, {`{a = null}`, `{}`},
		// spec: VAL-4
		{`2^53`, `9007199254740992`}, {`-2^53`, `-9007199254740992`}, {`2^53 - 1`, `9007199254740991`},
		{`2^53 + 2`, `9.007199254740994e+15`}, {`2^63`, `9.223372036854776e+18`},
		{`1e300`, `1e+300`}, {`-1e21`, `-1e+21`}, {`1e15`, `1000000000000000`},
		{`-0`, `0`}, {`0.1`, `0.1`}, {`-2.50`, `-2.5`}, {`1e-7`, `1e-7`}, {`1.5e-10`, `1.5e-10`}, {`0.000001`, `0.000001`},
		{`5e-324`, `5e-324`}, {`4.0`, `4`},
		// spec: VAL-6
		{`"é🐟<&>\226\128\168"`, "\"é🐟<&>\u2028\""}, {`"\0\1\31\127"`, `"\u0000\u0001\u001f` + "\x7f\""},
		{`"\"\\/\b\f\n\r\t"`, `"\"\\/\b\f\n\r\t"`},
	} {
		got, err := Encode(eval(t, L, tt.lua)[0], "value", 0)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.lua, got, err, tt.want)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	L := newState(t)
	for _, tt := range []struct{ lua, want string }{
		// spec: VAL-1
		{`print`, `bad value: value: a function cannot be stored`},
		{`{items = {1, 2, print}}`, `bad value: value.items[3]: a function cannot be stored`},
		{`{["odd key"] = {[1] = {_x = print}}}`, `bad value: value["odd key"][1]._x: a function cannot be stored`},
		{`{["a\"\n"] = print}`, `bad value: value["a\"\n"]: a function`},
		{`{["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa🐟🐟"] = print}`, `bad value: value["` + strings.Repeat("a", 38) + `"…]: a function`},
		{`{[""] = print}`, `bad value: value[""]: a function`},
		{`{[string.rep("k", 99)] = print}`, `bad value: value["` + strings.Repeat("k", 40) + `"…]: a function`},
		// spec: VAL-1, VAL-7
		{`{h = handle}`, `bad value: value.h: a handle cannot be stored`},
		{`raw`, `bad value: value: userdata cannot be stored`},
		{`coroutine.create(print)`, `bad value: value: a coroutine cannot be stored`},
		// spec: VAL-2
		{`{1, 2, x = 3}`, `bad value: value: the table mixes positions with the key "x"; use`},
		{`{a = {1, nil, 3}}`, `bad value: value.a: position 2 is empty but 3 is not; fill the gap with json.null`},
		{`{[2] = 1}`, `bad value: value: position 1 is empty but 2 is not`},
		{`{[1e9] = 1}`, `bad value: value: position 1 is empty but 1000000000 is not`},
		{`{1, [1e9] = 1}`, `bad value: value: position 2 is empty but 1000000000 is not`},
		{`{[1.5] = 1}`, `bad value: value: the number 1.5 cannot be a key`},
		{`{1, [1.5] = 1}`, `bad value: value: the number 1.5 cannot be a key`},
		{`{[0] = 1}`, `bad value: value: the number 0 cannot be a key`},
		{`{[-1] = 1, a = 1}`, `bad value: value: the number -1 cannot be a key`},
		{`{[1/0] = 1}`, `bad value: value: the number +Inf cannot be a key`},
		{`{[true] = 1}`, `bad value: value: true cannot be a key`},
		{`local t = {a = 1, b = 2}; t.a = nil; t[false] = 1; t[true] = 1; return t`, `bad value: value: false cannot be a key`},
		{`{a = 1, [false] = 1, [{}] = 2}`, `bad value: value: false cannot be a key`},
		{`{1, [{}] = 1}`, `bad value: value: a table cannot be a key`},
		{`{a = 1, [print] = 1}`, `bad value: value: a function cannot be a key`},
		{`local t = array(); t.x = 1; t[1] = 1; return t`, `bad value: value: the table mixes positions with the key "x"`},
		// spec: VAL-4
		{`{n = 0/0}`, `bad value: value.n: nan is not a number that can be written down`},
		{`{n = -1/0}`, `bad value: value.n: infinity is not`},
		// spec: VAL-5
		{`local t = {}; t.self = t; return t`, `bad value: value.self: the table contains itself`},
		{`local t = {}; t[1] = {a = {t}}; return t`, `bad value: value[1].a[1]: the table contains itself`},
		// spec: VAL-6
		{`{s = "a\255"}`, `bad value: value.s: "a\xff" is not valid UTF-8`},
		{`"\237\160\128"`, `bad value: value: "\xed\xa0\x80" is not valid UTF-8`},
		{`{["\255"] = 1}`, `bad value: value["\xff"]: "\xff" is not valid UTF-8`},
	} {
		_, err := Encode(eval(t, L, tt.lua)[0], "value", 0)
		wantError(t, tt.lua, err, tt.want)
	}
	wantError(t, "root", second(Encode(L.GetGlobal("print"), "data", 0)), `bad value: data: a function cannot be stored`)
}

// spec: VAL-3
func TestEncodeList(t *testing.T) {
	L := newState(t)
	for _, tt := range []struct{ lua, want string }{
		{`return`, `[]`},
		{`nil`, `[null]`},
		{`nil, null, 1, nil`, `[null,null,1,null]`},
		{`{}, array(), {null}, {a = null}`, `[{},[],[null],{}]`},
	} {
		got, err := EncodeList(eval(t, L, tt.lua), "result", 0)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.lua, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ lua, want string }{
		{`1, {items = {1, 2, print}}`, `bad value: argument 2.items[3]: a function cannot cross`},
		{`handle`, `bad value: argument 1: a handle cannot cross`},
		{`1, {string.rep("x", 90)}`, `bad value: arguments: larger than 80 bytes as JSON`},
		{`string.rep("x", 38), string.rep("x", 38)`, `bad value: arguments: larger than 80 bytes as JSON`},
	} {
		_, err := EncodeList(eval(t, L, tt.lua), "argument", 80)
		wantError(t, tt.lua, err, tt.want)
	}
}

// spec: VAL-5
func TestEncodeSize(t *testing.T) {
	L := newState(t)
	for _, code := range []string{`"12345678"`, `{12345678}`, `{a = 1234}`, `{{{{{}}}}}`, `1234567890`, `{"é", "é"}`} {
		v := eval(t, L, code)[0]
		all, err := Encode(v, "value", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Encode(v, "value", len(all)); err != nil || string(got) != string(all) {
			t.Errorf("%s with limit %d: %v", code, len(all), err)
		}
		_, err = Encode(v, "value", len(all)-1)
		wantError(t, code, err, fmt.Sprintf("bad value: value: larger than %d bytes as JSON", len(all)-1))
	}
	for name, limit := range map[string]int{"arguments": MaxArguments, "event": MaxEvent, "store": MaxStore} {
		if _, err := Encode(lua.LString(strings.Repeat("x", limit-2)), "value", limit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := Encode(lua.LString(strings.Repeat("x", limit-1)), "value", limit)
		wantError(t, name, err, "bad value: value: larger than")
	}
}

// A small table that unfolds to 2^60 parts ends at the limit, also without one.
//
// spec: VAL-5
func TestEncodeSharedTables(t *testing.T) {
	L := newState(t)
	for _, code := range []string{
		`local t = {}; for i = 1, 60 do t = {t, t} end; return t`,
		`local t = {}; for i = 1, 60 do t = {a = t, b = t} end; return t`,
	} {
		v := eval(t, L, code)[0]
		for _, limit := range []int{0, MaxStore} {
			_, err := Encode(v, "value", limit)
			wantError(t, code, err, "bad value: value: larger than")
		}
	}
}

// Slots and fields that give no bytes are looked at once, not once per place:
// here that is a fraction of a million steps instead of billions.
//
// spec: VAL-5
func TestEncodeEmptiedTables(t *testing.T) {
	L := newState(t)
	for _, code := range []string{
		`for i = 1, 200000 do n[i] = i end; for i = 1, 200000 do n[i] = nil end`,
		`for i = 1, 200000 do n[i] = i end; for i = 2, 200000 do n[i] = nil end`,
		`for i = 1, 200000 do n[i] = i end; for i = 1, 200000 do n[i] = nil end; n.x = 1`,
		`for i = 1, 100000 do n["k"..i] = null end`,
	} {
		v := eval(t, L, `local n = {} `+code+` local t = {} for i = 1, 20000 do t[i] = {n} end return t`)[0]
		got, err := Encode(v, "value", MaxArguments)
		if err != nil || len(got) < 20000 {
			t.Errorf("%s: %d bytes, %v", code, len(got), err)
		}
	}
}

// A table in many places is written in each of them.
//
// spec: VAL-2
func TestEncodeRepeated(t *testing.T) {
	L := newState(t)
	v := eval(t, L, `local part = {x = {1, array(), {}}}
		local t = {}; for i = 1, 300 do t[i] = {i, part} end; return t`)[0]
	got, err := Encode(v, "value", 0)
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprintf(`[%d,{"x":[1,[],{}]}]`, i+1))
	}
	if err != nil || string(got) != "["+strings.Join(want, ",")+"]" {
		t.Errorf("%s, %v", got, err)
	}
}

// A table that comes again is as deep as it was the first time.
//
// spec: VAL-5
func TestEncodeRepeatedDepth(t *testing.T) {
	L := newState(t)
	code := `local part = {}; for i = 2, 32 do part = {part} end
		local t = {}; for i = 1, 200 do t[i] = {x = i} end
		t[201] = part; t[202] = {part}
		local deep = part; for i = 1, %d do deep = {deep} end
		t[203] = deep
		return t`
	if _, err := Encode(eval(t, L, fmt.Sprintf(code, 31))[0], "value", 0); err != nil {
		t.Error(err)
	}
	_, err := Encode(eval(t, L, fmt.Sprintf(code, 32))[0], "value", 0)
	wantError(t, "65 levels", err, "bad value: value[203]"+strings.Repeat("[1]", 63)+": nested deeper than 64 levels")
}

// spec: VAL-5
func TestEncodeDepth(t *testing.T) {
	L := newState(t)
	deep := func(n int) lua.LValue {
		return eval(t, L, fmt.Sprintf(`local t = {}; for i = 2, %d do t = {t} end; return t`, n))[0]
	}
	if _, err := Encode(deep(64), "value", 0); err != nil {
		t.Error(err)
	}
	if _, err := EncodeList([]lua.LValue{deep(64)}, "argument", 0); err != nil {
		t.Error(err)
	}
	_, err := Encode(deep(65), "value", 0)
	wantError(t, "65 levels", err, "bad value: value"+strings.Repeat("[1]", 64)+": nested deeper than 64 levels")
	ring := eval(t, L, `local first = {}; local t = first; for i = 1, 99 do t = {t} end; first[1] = t; return t`)[0]
	_, err = Encode(ring, "value", 0)
	wantError(t, "long cycle", err, "bad value: value[1]")
}

func second[T any](_ T, err error) error { return err }
