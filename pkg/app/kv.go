package app

import (
	"context"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// Buckets are the app's key-value buckets, outside of any transaction.
type Buckets interface {
	Get(ctx context.Context, bucket, key string) (data []byte, ok bool, err error)
	Set(ctx context.Context, bucket, key string, data []byte) error
	Delete(ctx context.Context, bucket, key string) error
	List(ctx context.Context, bucket, prefix, cursor string, limit int) (keys []string, more bool, err error)
}

// bucketValue is what a bucket's userdata holds.
type bucketValue struct{ name string }

// LuaKind names it in errors of the converter.
func (b *bucketValue) LuaKind() string { return "bucket" }

// maxKVKey bounds a key in bytes.
const maxKVKey = 128

// luaKV is kv "name": a bucket with get, set, delete and list.
func (in *Instance) luaKV(L *lua.LState) int {
	name, ok := L.Get(1).(lua.LString)
	if !ok || len(name) == 0 || len(name) > 64 {
		luavm.Raise(L, wire.Errorf(wire.BadName, "kv needs a name of 1 to 64 bytes: kv \"settings\""))
	}
	ud := L.NewUserData()
	ud.Value = &bucketValue{string(name)}
	methods := map[string]lua.LValue{}
	for m, fn := range map[string]func(*lua.LState, Buckets, context.Context, string) int{"get": kvGet, "set": kvSet, "delete": kvDelete, "list": kvList} {
		methods[m] = L.NewFunction(func(L *lua.LState) int {
			if L.Get(1) != lua.LValue(ud) {
				L.RaiseError("call %s with a colon: bucket:%s(…)", m, m)
			}
			if in.Buckets == nil {
				luavm.Raise(L, wire.Errorf(wire.Unavailable, "kv cannot be used while the app is loading"))
			}
			return fn(L, in.Buckets, in.VM.Meter(), string(name))
		})
	}
	meta := L.NewTable()
	meta.RawSetString("__metatable", lua.LString("locked"))
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		m, ok := methods[L.Get(2).String()]
		if !ok {
			L.RaiseError("a bucket has get, set, delete and list, not %s", L.Get(2).String())
		}
		L.Push(m)
		return 1
	}))
	ud.Metatable = meta
	L.Push(ud)
	return 1
}

func kvKey(L *lua.LState) string {
	k, ok := L.Get(2).(lua.LString)
	if !ok || len(k) == 0 || len(k) > maxKVKey || !utf8.ValidString(string(k)) {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "a key is a string of 1 to %d bytes of UTF-8", maxKVKey))
	}
	return string(k)
}

func kvGet(L *lua.LState, b Buckets, ctx context.Context, name string) int {
	data, ok, err := b.Get(ctx, name, kvKey(L))
	if err != nil {
		luavm.Raise(L, wire.AsError(err))
	}
	if !ok {
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

func kvSet(L *lua.LState, b Buckets, ctx context.Context, name string) int {
	key := kvKey(L)
	if L.Get(3) == lua.LNil {
		return kvDelete(L, b, ctx, name)
	}
	data, err := value.Encode(L.Get(3), "value", value.MaxStore)
	if err != nil {
		luavm.Raise(L, err)
	}
	if err := b.Set(ctx, name, key, data); err != nil {
		luavm.Raise(L, wire.AsError(err))
	}
	return 0
}

func kvDelete(L *lua.LState, b Buckets, ctx context.Context, name string) int {
	if err := b.Delete(ctx, name, kvKey(L)); err != nil {
		luavm.Raise(L, wire.AsError(err))
	}
	return 0
}

// kvList is bucket:list{ prefix, limit, cursor }: { items, cursor }, in key order.
func kvList(L *lua.LState, b Buckets, ctx context.Context, name string) int {
	o, err := ReadListOptions(L.Get(2))
	if err != nil {
		luavm.Raise(L, err)
	}
	keys, more, err := b.List(ctx, name, o.Prefix, o.Cursor, o.Limit)
	if err != nil {
		luavm.Raise(L, wire.AsError(err))
	}
	items := luavm.NewArray(L)
	for _, key := range keys {
		data, ok, err := b.Get(ctx, name, key)
		if err != nil {
			luavm.Raise(L, wire.AsError(err))
		}
		if !ok {
			continue // deleted meanwhile
		}
		v, err := value.Decode(L, data, "value")
		if err != nil {
			luavm.Raise(L, err)
		}
		items.Append(ListItem(L, key, v))
	}
	cursor := ""
	if more {
		cursor = keys[len(keys)-1]
	}
	L.Push(ListResult(L, items, cursor))
	return 1
}

// ListOptions are those of a list of keys.
type ListOptions struct {
	Prefix, Cursor string
	Limit          int
}

// ReadListOptions reads { prefix, limit, cursor }, nil for none of them.
func ReadListOptions(v lua.LValue) (o ListOptions, err error) {
	o.Limit = 100
	t, ok := v.(*lua.LTable)
	if !ok {
		if v != lua.LNil {
			err = wire.Errorf(wire.BadValue, "list takes a table: list{ prefix = …, limit = …, cursor = … }")
		}
		return o, err
	}
	var unknown lua.LValue
	t.ForEach(func(k, _ lua.LValue) {
		if k != lua.LString("prefix") && k != lua.LString("cursor") && k != lua.LString("limit") {
			unknown = k
		}
	})
	if unknown != nil {
		return o, wire.Errorf(wire.BadValue, "list has no option %s: it takes prefix, limit and cursor", show(unknown))
	}
	for key, to := range map[string]*string{"prefix": &o.Prefix, "cursor": &o.Cursor} {
		switch v := t.RawGetString(key).(type) {
		case *lua.LNilType:
		case lua.LString:
			*to = string(v)
		default:
			return o, wire.Errorf(wire.BadValue, "%s is a string, not a %s", key, v.Type())
		}
	}
	switch n := t.RawGetString("limit").(type) {
	case *lua.LNilType:
	case lua.LNumber:
		o.Limit = int(n)
	default:
		return o, wire.Errorf(wire.BadValue, "limit is a number, not a %s", n.Type())
	}
	if o.Limit < 1 || o.Limit > 1000 {
		return o, wire.Errorf(wire.BadValue, "limit is from 1 to 1000")
	}
	return o, nil
}

// ListItem is one item of a list.
func ListItem(L *lua.LState, key string, v lua.LValue) lua.LValue {
	t := L.NewTable()
	t.RawSetString("key", lua.LString(key))
	t.RawSetString("value", v)
	return t
}

// ListResult is what a list gives: items, and a cursor if there are more.
func ListResult(L *lua.LState, items *lua.LTable, cursor string) lua.LValue {
	t := L.NewTable()
	t.RawSetString("items", items)
	if cursor != "" {
		t.RawSetString("cursor", lua.LString(cursor))
	}
	return t
}
