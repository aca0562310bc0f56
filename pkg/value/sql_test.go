package value

import (
	"math"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// spec: SQL-3, VAL-3, VAL-4, VAL-6
func TestToSQL(t *testing.T) {
	L := newState(t)
	L.SetGlobal("blob", NewBlob(L, "a\xff\x00"))
	for code, want := range map[string]Column{
		`nil`: {}, `null`: {},
		`true`: {Kind: Integer, Int: 1}, `false`: {Kind: Integer},
		`5`: {Kind: Integer, Int: 5}, `5.0`: {Kind: Integer, Int: 5}, `-0`: {Kind: Integer},
		`2^53`: {Kind: Integer, Int: MaxInteger}, `-2^53`: {Kind: Integer, Int: -MaxInteger},
		`2^53 + 2`: {Kind: Float, Float: MaxInteger + 2}, `0.5`: {Kind: Float, Float: 0.5}, `1e300`: {Kind: Float, Float: 1e300},
		`"é\0"`: {Kind: Text, Text: "é\x00"}, `""`: {Kind: Text}, `"5"`: {Kind: Text, Text: "5"},
		`blob`: {Kind: Blob, Text: "a\xff\x00"},
	} {
		got, err := ToSQL(eval(t, L, code)[0], "parameter 1")
		if err != nil || got != want {
			t.Errorf("%s: %#v, %v", code, got, err)
		}
	}
	for code, want := range map[string]string{
		`"\255"`:                          `bad value: parameter 1: "\xff" is not valid UTF-8; bind bytes with sql.blob(bytes)`,
		`0/0`:                             `bad value: parameter 1: nan is not`,
		`1/0`:                             `bad value: parameter 1: infinity is not`,
		`{}`:                              `bad value: parameter 1: a table cannot be bound; store it as text with json.stringify(value)`,
		`print`:                           `bad value: parameter 1: a function cannot be bound`,
		`handle`:                          `bad value: parameter 1: a handle cannot be bound`,
		`{class = "Auction", name = "x"}`: `bad value: parameter 1: a table cannot be bound`,
	} {
		_, err := ToSQL(eval(t, L, code)[0], "parameter 1")
		wantError(t, code, err, want)
	}
	_, err := Encode(L.GetGlobal("blob"), "value", 0)
	wantError(t, "blob as JSON", err, "bad value: value: a blob cannot be stored")
}

// spec: SQL-3, VAL-4, VAL-6
func TestFromSQL(t *testing.T) {
	for _, tt := range []struct {
		c    Column
		want lua.LValue
	}{
		{Column{}, lua.LNil},
		{Column{Kind: Integer, Int: -MaxInteger}, lua.LNumber(-MaxInteger)},
		{Column{Kind: Integer, Int: MaxInteger}, lua.LNumber(MaxInteger)},
		{Column{Kind: Float, Float: 5}, lua.LNumber(5)},
		{Column{Kind: Float, Float: 1e300}, lua.LNumber(1e300)},
		{Column{Kind: Text, Text: "007"}, lua.LString("007")},
		{Column{Kind: Blob, Text: "a\xff\x00"}, lua.LString("a\xff\x00")},
	} {
		got, err := FromSQL(tt.c, "column n")
		if err != nil || got != tt.want {
			t.Errorf("%+v: %v, %v", tt.c, got, err)
		}
	}
	for _, tt := range []struct {
		c    Column
		want string
	}{
		{Column{Kind: Integer, Int: MaxInteger + 1}, "bad value: column n: the integer 9007199254740993 is outside ±2^53 and would be rounded; select it as text with CAST(… AS TEXT)"},
		{Column{Kind: Integer, Int: math.MinInt64}, "bad value: column n: the integer -9223372036854775808 is"},
		{Column{Kind: Float, Float: math.Inf(1)}, "bad value: column n: infinity is not"},
	} {
		_, err := FromSQL(tt.c, "column n")
		wantError(t, "column", err, tt.want)
	}
}
