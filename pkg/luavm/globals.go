package luavm

import lua "github.com/yuin/gopher-lua"

// openGlobals makes the table behind the globals and the empty one in front of it. Only instructions reach the front
// table: there is no _G and no getfenv.
func (vm *VM) openGlobals() {
	L := vm.L
	vm.globals = L.CreateTable(0, 64)
	vm.env = L.CreateTable(0, 4)
	mt := L.CreateTable(0, 2)
	mt.RawSetString("__index", vm.globals)
	mt.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		if vm.frozen {
			L.RaiseError("global '%s' is read-only", L.Get(2).String())
		}
		vm.globals.RawSet(L.Get(2), L.Get(3))
		return 0
	}))
	vm.env.Metatable = mt
	L.Env = vm.env
	L.G.Global = vm.env
}

// SetGlobal gives app code a global. A table is taken as a library: app code gets a read-only view of it, and of the
// plain tables in it; metamethods of its metatable go on working. Platform code may go on changing the table itself.
func (vm *VM) SetGlobal(name string, v lua.LValue) {
	if t, ok := v.(*lua.LTable); ok {
		v = vm.library(t)
	}
	vm.globals.RawSetString(name, v)
}

// Defines says whether there is a global of that name and, if it is a library and member is not empty, whether the
// library has that member.
func (vm *VM) Defines(name, member string) bool {
	v := vm.globals.RawGetString(name)
	if t, ok := v.(*lua.LTable); ok && member != "" {
		if of, ok := vm.proxies[t]; ok {
			return of.RawGetString(member) != lua.LNil
		}
	}
	return v != lua.LNil
}

// Freeze makes globals and libraries read-only for app code.
func (vm *VM) Freeze() { vm.frozen = true }

// library returns the view of a table that app code may hold.
func (vm *VM) library(t *lua.LTable) *lua.LTable {
	if _, ok := vm.proxies[t]; ok {
		return t
	}
	for p, of := range vm.proxies {
		if of == t {
			return p
		}
	}
	view := &lua.LTable{Metatable: lua.LNil}
	vm.proxies[view] = t // before the tables inside, which may lead back here
	t.ForEach(func(k, v lua.LValue) {
		if inner, ok := v.(*lua.LTable); ok && inner.Metatable == lua.LNil {
			t.RawSet(k, vm.library(inner))
		}
	})
	mt := vm.L.CreateTable(0, 4)
	if old, ok := t.Metatable.(*lua.LTable); ok {
		old.ForEach(func(k, v lua.LValue) { mt.RawSet(k, v) })
	}
	mt.RawSetString("__index", t)
	mt.RawSetString("__newindex", vm.L.NewFunction(func(L *lua.LState) int {
		if vm.frozen {
			L.RaiseError("library table is read-only")
		}
		vm.store(L, t, L.Get(2), L.Get(3))
		return 0
	}))
	mt.RawSetString("__metatable", lua.LFalse)
	view.Metatable = mt
	return view
}

// module makes a library of functions and sets it as a global. It returns the table behind it.
func (vm *VM) module(name string, fns map[string]lua.LGFunction) *lua.LTable {
	t := vm.L.CreateTable(0, len(fns))
	for k, fn := range fns {
		t.RawSetString(k, vm.L.NewFunction(fn))
	}
	vm.SetGlobal(name, t)
	return t
}

// readable returns the table that argument n stands for.
func (vm *VM) readable(L *lua.LState, n int) *lua.LTable {
	t := argTable(L, n)
	if of, ok := vm.proxies[t]; ok {
		return of
	}
	return t
}

// writable is readable for functions that change the table.
func (vm *VM) writable(L *lua.LState, n int) *lua.LTable {
	t := argTable(L, n)
	of, ok := vm.proxies[t]
	if !ok {
		return t
	}
	if vm.frozen {
		L.RaiseError("library table is read-only")
	}
	return of
}
