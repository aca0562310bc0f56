package value

import (
	"bytes"
	"math"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// Encode gives v as canonical JSON. root names the value in errors ("value",
// "data"); limit bounds the encoded bytes, 0 stands for no limit. A top-level
// nil and json.null are null.
func Encode(v lua.LValue, root string, limit int) ([]byte, error) {
	e := newEncoder(limit, "be stored")
	err := e.value(v)
	if err == nil {
		err = e.room(0)
	}
	if err != nil {
		return nil, err.of(root)
	}
	return e.finish(), nil
}

// EncodeList encodes positions, the arguments or results of a call, as a JSON
// array in which nil and json.null are both null. what is "argument" or
// "result" and names the values in errors, as in `argument 2.items[3]: a
// function cannot cross`. limit bounds the encoded bytes of the whole list, 0
// stands for no limit.
func EncodeList(vs []lua.LValue, what string, limit int) ([]byte, error) {
	e := newEncoder(limit, "cross")
	e.buf = append(e.buf, '[')
	for i, v := range vs {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.value(v); err != nil {
			return nil, err.inList(what, i+1)
		}
	}
	e.buf = append(e.buf, ']')
	if err := e.room(0); err != nil {
		return nil, err.inList(what, 0)
	}
	return e.finish(), nil
}

// encoder writes one value. It is used by one goroutine and then pooled.
type encoder struct {
	buf    []byte
	limit  int
	cannot string                // what functions and handles cannot do: "be stored", "cross"
	open   [MaxDepth]*lua.LTable // the tables being written, outermost first
	depth  int
	fields []field // the fields of all open objects, a stack

	deepest int // the deepest level since the innermost open table began
	tables  int // tables written, see remember
	done    map[*lua.LTable]written
}

// field is one field of an object that is being written.
type field struct {
	name  string
	value lua.LValue
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func newEncoder(limit int, cannot string) *encoder {
	if limit <= 0 {
		limit = noLimit
	}
	e := encoders.Get().(*encoder)
	e.buf, e.limit, e.cannot, e.tables = e.buf[:0], limit, cannot, 0
	return e
}

// finish takes the result and gives the encoder back. After an error the
// encoder is dropped instead, with whatever it still refers to.
func (e *encoder) finish() []byte {
	const keepBytes, keep = 64 << 10, 1 << 10
	out := bytes.Clone(e.buf)
	if cap(e.buf) <= keepBytes && cap(e.fields) <= keep && len(e.done) <= keep {
		clear(e.done)
		encoders.Put(e)
	}
	return out
}

// room says whether n more bytes fit.
func (e *encoder) room(n int) *Error {
	if len(e.buf)+n <= e.limit {
		return nil
	}
	return tooLarge(e.limit)
}

func (e *encoder) value(v lua.LValue) *Error {
	switch v := v.(type) {
	case nil, *lua.LNilType:
		e.buf = append(e.buf, "null"...)
	case lua.LBool:
		if v {
			e.buf = append(e.buf, "true"...)
		} else {
			e.buf = append(e.buf, "false"...)
		}
	case lua.LNumber:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return notFinite(float64(v))
		}
		e.buf = appendNumber(e.buf, float64(v))
	case lua.LString:
		return e.text(string(v))
	case *lua.LTable:
		return e.table(v)
	case *lua.LUserData:
		if v != luavm.Null {
			return problem("%s cannot %s", kind(v), e.cannot)
		}
		e.buf = append(e.buf, "null"...)
	default:
		return problem("%s cannot %s", kind(v), e.cannot)
	}
	return nil
}

func (e *encoder) text(s string) *Error {
	if err := e.room(len(s) + 2); err != nil {
		return err
	}
	var valid bool
	if e.buf, valid = appendText(e.buf, s); !valid {
		return problem("%s is not valid UTF-8; JSON carries text only, so encode bytes as hex or base64", quote(s))
	}
	return nil
}

func notFinite(x float64) *Error {
	name := "infinity"
	if math.IsNaN(x) {
		name = "nan"
	}
	return problem("%s is not a number that can be written down; only finite numbers cross", name)
}
