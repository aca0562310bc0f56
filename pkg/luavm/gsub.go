package luavm

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) strGsub(L *lua.LState) int {
	s, src := argString(L, 1), argString(L, 2)
	repl := L.Get(3)
	switch repl.Type() {
	case lua.LTNumber:
		repl = lua.LString(text(repl))
	case lua.LTString, lua.LTFunction:
	case lua.LTTable:
	default:
		badType(L, 3, "string/function/table")
	}
	limit := optInt(L, 4, len(s)+1)
	m := vm.matcherFor(L, s, src, true)
	var b strings.Builder
	n, pos, copied := 0, 0, 0
	charged := 0
	for n < limit {
		to := m.at(pos)
		if m.failed != nil || to >= 0 {
			vm.settle(L, m)
		}
		if to >= 0 {
			n++
			b.WriteString(s[copied:pos])
			vm.replace(L, &b, m, repl, pos, to)
			copied = to
			if b.Len() > vm.opts.MaxString {
				vm.room(L, -1)
			}
			if b.Len()-charged > 64<<10 {
				vm.poll.m.Built(int64(b.Len() - charged))
				vm.spend(L, (b.Len()-charged)/32)
				charged = b.Len()
			}
		}
		if to > pos {
			pos = to
		} else if pos < len(s) {
			pos++
		} else {
			break
		}
		if m.p.anchored {
			break
		}
	}
	vm.settle(L, m)
	b.WriteString(s[copied:])
	if b.Len() > vm.opts.MaxString {
		vm.room(L, -1)
	}
	vm.room(L, b.Len()-charged)
	vm.pushString(L, b.String())
	L.Push(lua.LNumber(n))
	return 2
}

// replace writes what stands for one match.
func (vm *VM) replace(L *lua.LState, b *strings.Builder, m *matcher, repl lua.LValue, from, to int) {
	var v lua.LValue
	switch r := repl.(type) {
	case lua.LString:
		vm.expand(L, b, m, string(r), from, to)
		return
	case *lua.LTable:
		v = L.GetTable(r, m.value(0, from, to))
	default:
		L.Push(repl)
		L.Call(m.pushCaptures(L, from, to), 1)
		v = L.Get(-1)
		L.Pop(1)
	}
	switch {
	case lua.LVIsFalse(v):
		b.WriteString(m.s[from:to])
	case lua.LVCanConvToString(v):
		b.WriteString(text(v))
	default:
		fail(L, "invalid replacement value (a "+v.Type().String()+")")
	}
}

// expand writes a replacement string: %0 is the match, %1 to %9 are captures, any other %x is x.
func (vm *VM) expand(L *lua.LState, b *strings.Builder, m *matcher, r string, from, to int) {
	vm.scan(len(r))
	for {
		i := strings.IndexByte(r, '%')
		if i < 0 {
			b.WriteString(r)
			return
		}
		b.WriteString(r[:i])
		if i+1 == len(r) {
			fail(L, "invalid use of '%' in replacement string")
		}
		switch c := r[i+1]; {
		case c == '0':
			b.WriteString(m.s[from:to])
		case c >= '1' && c <= '9':
			k := int(c - '1')
			if k >= max(m.p.captures, 1) {
				fail(L, "invalid capture index")
			}
			b.WriteString(text(m.value(k, from, to)))
		default:
			b.WriteByte(c)
		}
		if b.Len() > vm.opts.MaxString {
			vm.room(L, -1)
		}
		r = r[i+2:]
	}
}
