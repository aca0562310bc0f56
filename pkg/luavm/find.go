package luavm

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	patternsKept    = 64
	patternKeptSize = 256
)

// matcherFor compiles the pattern, or finds it among those of late, and raises if it is malformed.
func (vm *VM) matcherFor(L *lua.LState, s, src string, anchors bool) *matcher {
	key := src
	if !anchors {
		key = "\x00" + src
	}
	p := vm.patterns[key]
	if p == nil {
		vm.poll.m.Work(int64(len(src)))
		var err error
		if p, err = compilePattern(src, anchors); err != nil {
			fail(L, err.Error())
		}
		if len(src) <= patternKeptSize {
			if len(vm.patterns) >= patternsKept {
				clear(vm.patterns)
			}
			vm.patterns[key] = p
		}
	}
	return &matcher{s: s, p: p, m: vm.poll.m}
}

// settle charges what the matcher did and raises if it was stopped.
func (vm *VM) settle(L *lua.LState, m *matcher) {
	m.settle()
	vm.stop(L)
	if m.failed != nil {
		fail(L, m.failed.Error())
	}
}

func (vm *VM) strFind(L *lua.LState) int  { return vm.find(L, true) }
func (vm *VM) strMatch(L *lua.LState) int { return vm.find(L, false) }

func (vm *VM) find(L *lua.LState, positions bool) int {
	s, src := argString(L, 1), argString(L, 2)
	init := optInt(L, 3, 1)
	if init < 0 {
		init += len(s) + 1
	}
	start := min(max(init-1, 0), len(s))
	if positions && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(src, "^$*+?.([%-")) {
		vm.scan(len(s) - start + len(src))
		i := strings.Index(s[start:], src)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(start + i + 1))
		L.Push(lua.LNumber(start + i + len(src)))
		return 2
	}
	m := vm.matcherFor(L, s, src, true)
	from, to := m.search(start)
	vm.settle(L, m)
	if from < 0 {
		L.Push(lua.LNil)
		return 1
	}
	if positions {
		L.Push(lua.LNumber(from + 1))
		L.Push(lua.LNumber(to))
		for i := range m.p.captures {
			L.Push(m.value(i, from, to))
		}
		return 2 + m.p.captures
	}
	return m.pushCaptures(L, from, to)
}

// value is a capture as Lua sees it; without captures the whole match is the first.
func (m *matcher) value(i, from, to int) lua.LValue {
	if i == 0 && m.p.captures == 0 {
		return lua.LString(m.s[from:to])
	}
	c := m.caps[i]
	if c.to == capPosition {
		return lua.LNumber(c.from + 1)
	}
	return lua.LString(m.s[c.from:c.to])
}

func (m *matcher) pushCaptures(L *lua.LState, from, to int) int {
	n := max(m.p.captures, 1)
	for i := range n {
		L.Push(m.value(i, from, to))
	}
	return n
}

func (vm *VM) strGmatch(L *lua.LState) int {
	s, src := argString(L, 1), argString(L, 2)
	vm.matcherFor(L, s, src, false) // a malformed pattern is refused here
	pos := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if pos > len(s) {
			return 0
		}
		m := vm.matcherFor(L, s, src, false) // each time: the meter may be another
		from, to := m.search(pos)
		vm.settle(L, m)
		if from < 0 {
			pos = len(s) + 1
			return 0
		}
		if pos = to; to == from {
			pos++
		}
		return m.pushCaptures(L, from, to)
	}))
	return 1
}
