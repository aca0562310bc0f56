package value

import (
	"math"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// Kind is the storage class of a SQL value.
type Kind uint8

// The storage classes SQLite has.
const (
	Null Kind = iota
	Integer
	Float
	Text
	Blob
)

// Column is one SQL value, a parameter or a column of a row.
type Column struct {
	// Kind says which of the other fields counts.
	Kind Kind
	// Int is the value of an Integer.
	Int int64
	// Float is the value of a Float.
	Float float64
	// Text is the value of a Text, or the bytes of a Blob.
	Text string
}

// ToSQL converts a parameter. nil and json.null are Null, booleans 0 and 1,
// integral numbers within ±2^53 Integer, other finite numbers Float, UTF-8 Text
// and what [NewBlob] made Blob. Everything else is an error; path names the
// parameter in it.
func ToSQL(v lua.LValue, path string) (Column, error) {
	c, err := toSQL(v)
	if err != nil {
		return Column{}, err.of(path)
	}
	return c, nil
}

func toSQL(v lua.LValue) (Column, *Error) {
	switch v := v.(type) {
	case nil, *lua.LNilType:
		return Column{}, nil
	case lua.LBool:
		c := Column{Kind: Integer}
		if v {
			c.Int = 1
		}
		return c, nil
	case lua.LNumber:
		x := float64(v)
		switch {
		case integral(x):
			return Column{Kind: Integer, Int: int64(x)}, nil
		case math.IsNaN(x) || math.IsInf(x, 0):
			return Column{}, notFinite(x)
		}
		return Column{Kind: Float, Float: x}, nil
	case lua.LString:
		if !utf8.ValidString(string(v)) {
			return Column{}, problem("%s is not valid UTF-8; bind bytes with sql.blob(bytes)", quote(string(v)))
		}
		return Column{Kind: Text, Text: string(v)}, nil
	case *lua.LUserData:
		if v == luavm.Null {
			return Column{}, nil
		}
		if b, ok := v.Value.(bytesValue); ok {
			return Column{Kind: Blob, Text: string(b)}, nil
		}
	case *lua.LTable:
		return Column{}, problem("a table cannot be bound; store it as text with json.stringify(value)")
	}
	return Column{}, problem("%s cannot be bound; use nil, a boolean, a number, text or sql.blob(bytes)", kind(v))
}

// FromSQL converts a column of a row. Null is nil, an absent field. An integer
// outside ±2^53 is an error, never rounded; path names the column in it.
func FromSQL(c Column, path string) (lua.LValue, error) {
	switch c.Kind {
	case Null:
		return lua.LNil, nil
	case Integer:
		if c.Int < -MaxInteger || c.Int > MaxInteger {
			return nil, problem("the integer %d is outside ±2^53 and would be rounded; "+
				"select it as text with CAST(… AS TEXT)", c.Int).of(path)
		}
		return lua.LNumber(c.Int), nil
	case Float:
		if math.IsNaN(c.Float) || math.IsInf(c.Float, 0) {
			return nil, notFinite(c.Float).of(path)
		}
		return lua.LNumber(c.Float), nil
	default:
		return lua.LString(c.Text), nil
	}
}

// bytesValue is what the userdata of sql.blob(bytes) carries.
type bytesValue string

// LuaKind names it in errors: "a blob cannot be stored".
func (bytesValue) LuaKind() string { return "blob" }

// NewBlob gives the value of sql.blob(bytes): userdata that [ToSQL] binds as a
// Blob and that crosses no other boundary.
func NewBlob(L *lua.LState, bytes string) lua.LValue {
	ud := L.NewUserData()
	ud.Value = bytesValue(bytes)
	return ud
}
