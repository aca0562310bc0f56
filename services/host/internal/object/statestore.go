package object

import (
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// maxKey bounds a key of the store in bytes.
const maxKey = 512

func storeKey(L *lua.LState, n int) string {
	k, ok := L.Get(n).(lua.LString)
	if !ok || len(k) == 0 || len(k) > maxKey || !utf8.ValidString(string(k)) {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "a key is a string of 1 to %d bytes of UTF-8", maxKey))
	}
	return string(k)
}

// storeGet is state.store:get(key).
func (s *stateBinding) storeGet(L *lua.LState) int {
	data, err := s.db().Get(storeKey(L, 2))
	if err != nil {
		s.sqlRaise(L, err)
	}
	if data == nil {
		L.Push(lua.LNil)
		return 1
	}
	v, err := value.Decode(L, data, "value")
	if err != nil {
		luavm.Raise(L, err)
	}
	L.Push(v)
	return 1
}

// storeSet is state.store:set(key, value); nil deletes.
func (s *stateBinding) storeSet(L *lua.LState) int {
	key := storeKey(L, 2)
	if L.Get(3) == lua.LNil {
		return s.storeDelete(L)
	}
	data, err := value.Encode(L.Get(3), "value", value.MaxStore)
	if err != nil {
		luavm.Raise(L, err)
	}
	if err := s.db().Set(key, data); err != nil {
		s.sqlRaise(L, err)
	}
	return 0
}

// storeDelete is state.store:delete(key).
func (s *stateBinding) storeDelete(L *lua.LState) int {
	if err := s.db().Delete(storeKey(L, 2)); err != nil {
		s.sqlRaise(L, err)
	}
	return 0
}

// storeList is state.store:list{ prefix, limit, cursor }: { items, cursor }, in key order.
func (s *stateBinding) storeList(L *lua.LState) int {
	o, err := app.ReadListOptions(L.Get(2))
	if err != nil {
		luavm.Raise(L, err)
	}
	items, more, err := s.db().List(o.Prefix, o.Cursor, o.Limit)
	if err != nil {
		s.sqlRaise(L, err)
	}
	list := luavm.NewArray(L)
	for i, item := range items {
		v, err := value.Decode(L, item.Data, "value")
		if err != nil {
			luavm.Raise(L, err)
		}
		list.RawSetInt(i+1, app.ListItem(L, item.Key, v))
		s.a.t.meter.Built(int64(len(item.Data)))
	}
	cursor := ""
	if more {
		cursor = items[len(items)-1].Key
	}
	L.Push(app.ListResult(L, list, cursor))
	return 1
}
