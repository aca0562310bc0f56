package luavm

import lua "github.com/yuin/gopher-lua"

// ArrayMark is the metatable of tables that encode as an array although they may be empty (VAL-2). App code does not see
// it: to getmetatable such a table has none, and its first string key removes the mark. All VMs share it.
var ArrayMark = &lua.LTable{Metatable: lua.LNil}

func init() {
	ArrayMark.RawSetString("__newindex", &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
		t := L.CheckTable(1)
		unmark(t, L.Get(2), L.Get(3))
		L.RawSet(t, L.Get(2), L.Get(3))
		return 0
	}})
}

// Null is json.null, one value for all VMs.
var Null = func() *lua.LUserData {
	mt := &lua.LTable{Metatable: lua.LNil}
	mt.RawSetString("__tostring", &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
		L.Push(lua.LString("null"))
		return 1
	}})
	mt.RawSetString("__metatable", lua.LFalse)
	return &lua.LUserData{Metatable: mt}
}()

// NewArray returns an empty table with the array mark.
func NewArray(L *lua.LState) *lua.LTable {
	t := L.CreateTable(0, 0)
	t.Metatable = ArrayMark
	return t
}

// unmark removes the array mark when a string key is about to be set.
func unmark(t *lua.LTable, k, v lua.LValue) {
	if t.Metatable == lua.LValue(ArrayMark) && k.Type() == lua.LTString && v != lua.LNil {
		t.Metatable = lua.LNil
	}
}
