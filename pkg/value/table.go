package value

import (
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// table writes a table as an array or an object. It looks at raw fields only.
func (e *encoder) table(t *lua.LTable) *Error {
	for _, outer := range e.open[:e.depth] {
		if outer == t {
			return problem("the table contains itself; a value with a cycle cannot %s", e.cannot)
		}
	}
	if e.depth == MaxDepth {
		return tooDeep()
	}
	if err := e.room(2); err != nil {
		return err
	}
	if e.repeat(t) {
		return nil
	}
	start, outer := len(e.buf), e.deepest
	e.open[e.depth] = t
	e.depth++
	e.deepest = e.depth
	err := e.contents(t)
	e.remember(t, written{start, len(e.buf), e.deepest - e.depth + 1})
	e.deepest = max(e.deepest, outer)
	e.depth--
	e.open[e.depth] = nil
	return err
}

func (e *encoder) contents(t *lua.LTable) *Error {
	if first := t.RawGetInt(1); first != lua.LNil {
		return e.array(t, first)
	}
	switch key, _ := t.Next(lua.LNil); key.(type) {
	case lua.LString:
		return e.object(t)
	case *lua.LNilType:
		if t.Metatable == lua.LValue(luavm.ArrayMark) {
			e.buf = append(e.buf, '[', ']')
		} else {
			e.buf = append(e.buf, '{', '}')
		}
		return nil
	default:
		return badKey(key, 0)
	}
}

// array writes the elements 1..n and then makes sure that there is no other
// key.
func (e *encoder) array(t *lua.LTable, v lua.LValue) *Error {
	e.buf = append(e.buf, '[')
	n := 1
	for {
		if err := e.value(v); err != nil {
			return err.in(indexStep(n))
		}
		if v = t.RawGetInt(n + 1); v == lua.LNil {
			break
		}
		n++
		e.buf = append(e.buf, ',')
		if err := e.room(1); err != nil {
			return err
		}
	}
	if key, _ := t.Next(lua.LNumber(n)); key != lua.LNil {
		return badKey(key, n)
	}
	e.buf = append(e.buf, ']')
	return nil
}

// object writes the fields in the order of their names.
func (e *encoder) object(t *lua.LTable) *Error {
	base, odd := len(e.fields), false
	t.ForEach(func(k, v lua.LValue) {
		name, ok := k.(lua.LString)
		switch {
		case !ok:
			odd = true
		case v != lua.LValue(luavm.Null):
			e.fields = append(e.fields, field{string(name), v})
		}
	})
	if odd {
		return badKey(oddKey(t), 0)
	}
	const least = len(`"":0`)
	if err := e.room(least * (len(e.fields) - base)); err != nil {
		return err
	}
	slices.SortFunc(e.fields[base:], func(a, b field) int { return strings.Compare(a.name, b.name) })
	e.buf = append(e.buf, '{')
	for i := base; i < len(e.fields); i++ {
		f := e.fields[i]
		if i > base {
			e.buf = append(e.buf, ',')
		}
		if err := e.text(f.name); err != nil {
			return err.in(fieldStep(f.name))
		}
		e.buf = append(e.buf, ':')
		if err := e.value(f.value); err != nil {
			return err.in(fieldStep(f.name))
		}
	}
	e.buf = append(e.buf, '}')
	clear(e.fields[base:])
	e.fields = e.fields[:base]
	return nil
}

// oddKey finds the first key that is not text, in the order of insertion, so
// that the same table always gives the same error.
func oddKey(t *lua.LTable) lua.LValue {
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		if _, ok := k.(lua.LString); !ok {
			return k
		}
	}
	return lua.LNil
}

// badKey says why key cannot stand in a table whose positions 1..n are filled.
func badKey(key lua.LValue, n int) *Error {
	const want = "use the positions 1..n for an array or only text keys for an object"
	switch k := key.(type) {
	case lua.LString:
		return problem("the table mixes positions with the key %s; %s", quote(string(k)), want)
	case lua.LNumber:
		if x := float64(k); x > float64(n) && integral(x) {
			return problem("position %d is empty but %s is not; fill the gap with json.null, or use text keys",
				n+1, strconv.FormatFloat(x, 'f', -1, 64))
		}
		return problem("the number %s cannot be a key here; %s", strconv.FormatFloat(float64(k), 'g', -1, 64), want)
	case lua.LBool:
		return problem("%s cannot be a key; %s", k.String(), want)
	default:
		return problem("%s cannot be a key; %s", kind(key), want)
	}
}
