package value

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// Each JSON comes back in the canonical form, from Decode and from Parse.
func TestDecode(t *testing.T) {
	L := newState(t)
	for _, tt := range []struct{ json, want string }{
		{" \t\r\n null ", `null`}, {`true`, `true`}, {`false`, `false`},
		// spec: VAL-2
		{`{}`, `{}`}, {`[]`, `[]`}, {` [ ] `, `[]`}, {`{ "a" : [ ] , "b" : { } }`, `{"a":[],"b":{}}`},
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`}, {`[1,[2,[3]],{"a":[{}]}]`, `[1,[2,[3]],{"a":[{}]}]`},
		{`{"a":1,"a":2}`, `{"a":2}`}, {`{"":1}`, `{"":1}`},
		// spec: VAL-3
		{`{"a":null,"b":1}`, `{"b":1}`}, {`{"a":1,"a":null}`, `{}`}, {`{"a":null,"a":1}`, `{"a":1}`},
		{`[null,1,null]`, `[null,1,null]`}, {`{"a":[null]}`, `{"a":[null]}`},
		// spec: VAL-4
		{`9007199254740992`, `9007199254740992`}, {`-9007199254740992`, `-9007199254740992`},
		{`1e3`, `1000`}, {`1.0`, `1`}, {`-0`, `0`}, {`-0.0`, `0`}, {`0`, `0`}, {`10`, `10`}, {`1E+2`, `100`},
		{`9007199254740994.0`, `9.007199254740994e+15`}, {`1e40`, `1e+40`}, {`1e-999`, `0`}, {`0.5e-7`, `5e-8`},
		// spec: VAL-6
		{`"é\u00e9\ud83d\udc1f"`, `"éé🐟"`}, {`"\u0000\/\b\f\n\r\t\"\\"`, `"\u0000/\b\f\n\r\t\"\\"`},
		{"\"\u2028\x7f\ufffd\"", "\"\u2028\x7f\ufffd\""}, {`"\uFFFD\uffff"`, "\"\ufffd\uffff\""}, {`{"\u0061":1}`, `{"a":1}`},
	} {
		v, err := Decode(L, []byte(tt.json), "value")
		if err != nil {
			t.Errorf("%s: %v", tt.json, err)
			continue
		}
		got, err := Encode(v, "value", 0)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: decodes and encodes as %s, %v, want %s", tt.json, got, err, tt.want)
		}
		got, err = Canonical([]byte(tt.json), "value", 0)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: canonical is %s, %v, want %s", tt.json, got, err, tt.want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	L := newState(t)
	deep := strings.Repeat(`[`, 65) + strings.Repeat(`]`, 65)
	for _, tt := range []struct{ json, want string }{
		// spec: VAL-4
		{`9007199254740993`, `bad value: value: the integer 9007199254740993 is outside ±2^53 and would be rounded; carry it as text`},
		{`{"a":[1,-9007199254740993]}`, `bad value: value.a[2]: the integer -9007199254740993 is outside`},
		{`{"a b":12345678901234567890123}`, `bad value: value["a b"]: the integer 12345678901234567890123 is outside`},
		{strings.Repeat("9", 99), `bad value: value: the integer ` + strings.Repeat("9", 40) + `… is outside`},
		{`[1e999]`, `bad value: value[1]: the number 1e999 is too large`},
		// spec: VAL-5
		{deep, `bad value: value` + strings.Repeat("[1]", 64) + `: nested deeper than 64 levels`},
		{strings.Repeat(`{"a":`, 1<<16), `bad value: value` + strings.Repeat(".a", 64) + `: nested deeper`},
		// spec: VAL-6
		{"{\"a\":\"x\xff\"}", `bad value: value: not valid JSON: text that is not valid UTF-8; encode bytes as hex or base64; at byte 8`},
		{"\"\\n\xed\xa0\x80\"", `bad value: value: not valid JSON: text that is not valid UTF-8`},
		{`"\ud83d"`, `bad value: value: not valid JSON: \ud83d is half of a surrogate pair`},
		{`"\udc1f\ud83d"`, `bad value: value: not valid JSON: \udc1f is half`},
		{`"\ud83d\ud83d"`, `bad value: value: not valid JSON: \ud83d is half`},
		{`"\ud83dx\udc1f"`, `bad value: value: not valid JSON: \ud83d is half`},
		{``, `bad value: value: not valid JSON: it ends where a value should stand at byte 1`},
		{`nul`, `bad value: value: not valid JSON: it ends where null should stand at byte 4`},
		{`truE`, `bad value: value: not valid JSON: 'E' instead of true at byte 4`},
		{`1 2`, `bad value: value: not valid JSON: '2' instead of the end at byte 3`},
		{`{} x`, `bad value: value: not valid JSON: 'x' instead of the end at byte 4`},
		{`{a:1}`, `bad value: value: not valid JSON: 'a' instead of the name of a field in quotes at byte 2`},
		{`{"a":1,}`, `bad value: value: not valid JSON: '}' instead of the name`},
		{`{"a\x":1}`, `bad value: value: not valid JSON: 'x' instead of an escape at byte 5`},
		{`{"a\u0041`, `bad value: value: not valid JSON: it ends where '"' should stand`},
		{`{"a" 1}`, `bad value: value: not valid JSON: '1' instead of ':' at byte 6`},
		{`{"a":1 "b"`, `bad value: value: not valid JSON: '"' instead of ',' or '}'`},
		{`[1,]`, `bad value: value: not valid JSON: ']' instead of a value`}, {`[,1]`, `bad value: value: not valid JSON: ',' instead`},
		{`[1 2]`, `bad value: value: not valid JSON: '2' instead of ',' or ']'`}, {`[`, `bad value: value: not valid JSON: it ends`},
		{`01`, `bad value: value: not valid JSON: '1' instead of`}, {`-`, `bad value: value: not valid JSON: it ends where a digit`},
		{`+1`, `bad value: value: not`}, {`.5`, `bad value: value: not`}, {`1.`, `bad value: value: not`}, {`1e`, `bad value: value: not`},
		{`NaN`, `bad value: value: not`}, {`Infinity`, `bad value: value: not`}, {`0x10`, `bad value: value: not`},
		{"\ufeff1", `bad value: value: not`}, {"\x00", `bad value: value: not`}, {"\xff", `bad value: value: not valid JSON: 0xff instead`},
		{`"a`, `bad value: value: not valid JSON: it ends where '"' should stand`}, {`"\`, `bad value: value: not`}, {`"\x"`, `bad value: value: not`},
		{`"\u12"`, `bad value: value: not valid JSON: \u without four hex digits`}, {`"\u12G4"`, `bad value: value: not`},
		{"\"a\nb\"", `bad value: value: not valid JSON: the control character 0x0a, which must be escaped, at byte 3`},
		{"\"\\t\x01\"", `bad value: value: not valid JSON: the control character 0x01`},
	} {
		_, err := Decode(L, []byte(tt.json), "value")
		wantError(t, tt.json, err, tt.want)
		_, err = Parse([]byte(tt.json))
		wantError(t, tt.json, err, tt.want)
	}
}

// spec: VAL-2, VAL-3, VAL-7
func TestDecodedTables(t *testing.T) {
	L := newState(t)
	v, err := Decode(L, []byte(`{"class":"Auction","name":"lot-42","list":[1,null],"none":[],"x":null}`), "value")
	if err != nil {
		t.Fatal(err)
	}
	table := v.(*lua.LTable)
	list, none := table.RawGetString("list").(*lua.LTable), table.RawGetString("none").(*lua.LTable)
	if table.Metatable != lua.LNil || list.Metatable != lua.LNil {
		t.Error("a decoded table has a metatable")
	}
	if none.Metatable != lua.LValue(luavm.ArrayMark) {
		t.Error("an empty array has lost its mark")
	}
	if list.Len() != 2 || list.RawGetInt(2) != lua.LValue(luavm.Null) {
		t.Error("a null element is not json.null")
	}
	if table.RawGetString("x") != lua.LNil {
		t.Error("a null field is present")
	}
	if v, err := Decode(L, []byte("null"), "value"); err != nil || v != lua.LNil {
		t.Errorf("null: %v, %v", v, err)
	}
}

// spec: VAL-3
func TestDecodeList(t *testing.T) {
	L := newState(t)
	vs, err := DecodeList(L, []byte(` [ null , 1, [null], {"a":null}, null ] `), "argument")
	if err != nil || len(vs) != 5 {
		t.Fatalf("%v, %v", vs, err)
	}
	if vs[0] != lua.LNil || vs[4] != lua.LNil || vs[1] != lua.LNumber(1) {
		t.Errorf("%v", vs)
	}
	if got, err := EncodeList(vs, "argument", 0); err != nil || string(got) != `[null,1,[null],{},null]` {
		t.Errorf("%s, %v", got, err)
	}
	if vs, err := DecodeList(L, []byte("[]"), "argument"); err != nil || len(vs) != 0 {
		t.Errorf("%v, %v", vs, err)
	}
	if _, err := DecodeList(L, []byte("["+strings.Repeat("[", 64)+strings.Repeat("]", 64)+"]"), "argument"); err != nil {
		t.Errorf("64 levels in an argument: %v", err)
	}
	for _, tt := range []struct{ json, want string }{
		{`{}`, `bad value: results: not valid JSON: '{' instead of '['`},
		{``, `bad value: results: not valid JSON: it ends`},
		{`[1`, `bad value: results: not valid JSON: it ends`},
		{`[1,]`, `bad value: results: not valid JSON`},
		{`[1]x`, `bad value: results: not valid JSON`},
		{`[1,{"a":9007199254740993}]`, `bad value: result 2.a: the integer 9007199254740993`},
		{"[" + strings.Repeat("[", 65), `bad value: result 1` + strings.Repeat("[1]", 64) + `: nested deeper`},
	} {
		_, err := DecodeList(L, []byte(tt.json), "result")
		wantError(t, tt.json, err, tt.want)
	}
}
