//lint:file-ignore U1000 the methods of builders are used through a type parameter

package value

import (
	"sync"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// Decode gives the Lua value of exactly one JSON value. root names it in
// errors. A null is json.null inside an array, an absent field inside an
// object and nil at the top. Tables come out plain: an empty array carries the
// mark that makes it encode as an array again, nothing else has a metatable.
func Decode(L *lua.LState, data []byte, root string) (lua.LValue, error) {
	p := newLuaParser(L, data)
	v, err := p.document()
	if err != nil {
		return nil, err.of(root)
	}
	release(p)
	return orNil(v), nil
}

// DecodeList gives the positions of a JSON array, the arguments or results of
// a call; null becomes nil. what is "argument" or "result" and names the values
// in errors.
func DecodeList(L *lua.LState, data []byte, what string) ([]lua.LValue, error) {
	p := newLuaParser(L, data)
	if p.peek() != '[' {
		return nil, p.unexpected("'['").of(what + "s")
	}
	p.pos++
	var list []lua.LValue
	for p.peek() != ']' {
		if len(list) > 0 {
			if !p.at(',') {
				return nil, p.unexpected("',' or ']'").of(what + "s")
			}
			p.pos++
		}
		v, err := p.value()
		if err != nil {
			return nil, err.inList(what, len(list)+1)
		}
		list = append(list, orNil(v))
	}
	p.pos++
	if err := p.end(); err != nil {
		return nil, err.of(what + "s")
	}
	release(p)
	return list, nil
}

// orNil turns a json.null that stands alone into nil.
func orNil(v lua.LValue) lua.LValue {
	if v == lua.LValue(luavm.Null) {
		return lua.LNil
	}
	return v
}

type luaParser = parser[lua.LValue, luaBuilder]

var luaParsers = sync.Pool{New: func() any { return new(luaParser) }}

func newLuaParser(L *lua.LState, data []byte) *luaParser {
	p := luaParsers.Get().(*luaParser)
	p.data, p.pos, p.build.L = data, 0, L
	return p
}

// release gives a parser back. After an error it is dropped instead.
func release(p *luaParser) {
	const keep = 1 << 10
	if cap(p.items) <= keep && cap(p.members) <= keep {
		p.data, p.build.L = nil, nil
		luaParsers.Put(p)
	}
}

// luaBuilder makes Lua values. Inside it null is luavm.Null everywhere.
type luaBuilder struct{ L *lua.LState }

func (luaBuilder) null() lua.LValue            { return luavm.Null }
func (luaBuilder) boolean(b bool) lua.LValue   { return lua.LBool(b) }
func (luaBuilder) integer(i int64) lua.LValue  { return lua.LNumber(i) }
func (luaBuilder) float(f float64) lua.LValue  { return lua.LNumber(f) }
func (luaBuilder) text(text []byte) lua.LValue { return lua.LString(text) }

func (b luaBuilder) array(items []lua.LValue) lua.LValue {
	if len(items) == 0 {
		return luavm.NewArray(b.L)
	}
	t := b.L.CreateTable(len(items), 0)
	for i, v := range items {
		t.RawSetInt(i+1, v)
	}
	return t
}

func (b luaBuilder) object(members []member[lua.LValue]) lua.LValue {
	t := b.L.CreateTable(0, len(members))
	for _, m := range members {
		t.RawSetString(string(m.name), orNil(m.value))
	}
	return t
}
