package app

import (
	"context"
	"strconv"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// Caller makes the calls of a VM's code to objects. args and results are JSON arrays of positions. An error that the
// called app raised comes as a *wire.Error without a code.
type Caller interface {
	CallObject(ctx context.Context, id objectid.ID, method string, args []byte) (results []byte, err error)
}

// Handle is a reference to an object; userdata in Lua, so that no table can pass for one.
type Handle struct {
	ID  objectid.ID
	bad error // what made it was no name
}

// LuaKind names it in errors of the converter.
func (h *Handle) LuaKind() string { return "handle" }

// Check says whether the handle's name can be used.
func (h *Handle) Check() error {
	if h.bad != nil {
		return h.bad
	}
	return h.ID.Validate()
}

// ClassRef is a class as a value in Lua.
type ClassRef struct{ Name string }

// LuaKind names it in errors of the converter.
func (c *ClassRef) LuaKind() string { return "class" }

// ConnectionRef is a connection program as a value in Lua.
type ConnectionRef struct{ Name string }

// LuaKind names it in errors of the converter.
func (c *ConnectionRef) LuaKind() string { return "connection program" }

// NewHandle makes a handle to the object of a class that a Lua value names.
func (in *Instance) NewHandle(class string, name lua.LValue) lua.LValue {
	h := &Handle{ID: objectid.ID{Class: class}}
	switch n := name.(type) {
	case lua.LString:
		h.ID.Name = string(n)
	case lua.LNumber:
		f := float64(n)
		if i := int64(f); float64(i) == f && i >= -value.MaxInteger && i <= value.MaxInteger {
			h.ID.Name = strconv.FormatInt(i, 10)
		} else {
			h.bad = wire.Errorf(wire.BadName, "%s(%v): a number that names an object must be integral", class, f)
		}
	default:
		h.bad = wire.Errorf(wire.BadName, "%s(%s): an object is named by a string or an integral number", class, name.Type())
	}
	ud := in.VM.L.NewUserData()
	ud.Value, ud.Metatable = h, in.handleMeta
	return ud
}

// CheckHandle gives the handle that argument n is, or raises.
func CheckHandle(L *lua.LState, n int) *Handle {
	if ud, ok := L.Get(n).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*Handle); ok {
			if err := h.Check(); err != nil {
				luavm.Raise(L, err)
			}
			return h
		}
	}
	luavm.Raise(L, wire.Errorf(wire.BadValue, "argument %d must be a handle such as Account(\"ada\"), got %s", n-1, L.Get(n).Type()))
	return nil
}

// refs prepares the metatables of handles and classes.
func (in *Instance) refs() {
	L := in.VM.L
	locked := lua.LString("locked")

	in.handleMeta = L.NewTable()
	in.handleMeta.RawSetString("__metatable", locked)
	in.handleMeta.RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
		h := L.CheckUserData(1).Value.(*Handle)
		L.Push(lua.LString(h.ID.String()))
		return 1
	}))
	in.handleMeta.RawSetString("__eq", L.NewFunction(func(L *lua.LState) int {
		x, ok1 := L.CheckUserData(1).Value.(*Handle)
		y, ok2 := L.CheckUserData(2).Value.(*Handle)
		L.Push(lua.LBool(ok1 && ok2 && x.ID == y.ID && x.bad == nil && y.bad == nil))
		return 1
	}))
	in.handleMeta.RawSetString("__index", L.NewFunction(in.handleIndex))

	in.identityMeta = L.NewTable()
	methods := L.NewTable()
	methods.RawSetString("is", L.NewFunction(identityIs))
	in.identityMeta.RawSetString("__index", methods)
	in.identityMeta.RawSetString("__metatable", locked)

	in.classMeta = L.NewTable()
	in.classMeta.RawSetString("__metatable", locked)
	in.classMeta.RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(L.CheckUserData(1).Value.(*ClassRef).Name))
		return 1
	}))
	in.classMeta.RawSetString("__eq", L.NewFunction(func(L *lua.LState) int {
		x, ok1 := L.CheckUserData(1).Value.(*ClassRef)
		y, ok2 := L.CheckUserData(2).Value.(*ClassRef)
		L.Push(lua.LBool(ok1 && ok2 && *x == *y))
		return 1
	}))
	make := L.NewFunction(func(L *lua.LState) int {
		ud, ok := L.Get(1).(*lua.LUserData)
		if ok {
			if c, ok := ud.Value.(*ClassRef); ok {
				L.Push(in.NewHandle(c.Name, L.Get(2)))
				return 1
			}
		}
		L.RaiseError("call get with a colon: Class:get(name)")
		return 0
	})
	in.classMeta.RawSetString("__call", make)
	in.classMeta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		if L.Get(2) == lua.LString("get") {
			L.Push(make)
			return 1
		}
		c := L.CheckUserData(1).Value.(*ClassRef)
		L.RaiseError("%s is a class: make a handle first, as in %s(\"name\"):%s(…)", c.Name, c.Name, L.Get(2).String())
		return 0
	}))
}

// handleIndex gives the function that calls a method: every string key of a handle is one.
func (in *Instance) handleIndex(L *lua.LState) int {
	key, ok := L.Get(2).(lua.LString)
	if !ok {
		L.RaiseError("a handle has only methods, not a field %s", L.Get(2).String())
	}
	method := string(key)
	fn := in.methods[method]
	if fn == nil {
		fn = L.NewFunction(func(L *lua.LState) int { return in.callHandle(L, method) })
		if len(in.methods) < 1000 {
			in.methods[method] = fn
		}
	}
	L.Push(fn)
	return 1
}

func (in *Instance) callHandle(L *lua.LState, method string) int {
	ud, _ := L.Get(1).(*lua.LUserData)
	h, ok := (*Handle)(nil), false
	if ud != nil {
		h, ok = ud.Value.(*Handle)
	}
	if !ok {
		L.RaiseError("call %s with a colon: handle:%s(…)", method, method)
	}
	if err := h.Check(); err != nil {
		luavm.Raise(L, err)
	}
	if !utf8.ValidString(method) || !objectid.ValidWord(method) {
		luavm.Raise(L, wire.Errorf(wire.NoSuchMethod, "%q cannot be the name of a method", method))
	}
	if in.Caller == nil {
		luavm.Raise(L, wire.Errorf(wire.Unavailable, "%s:%s: objects cannot be called while the app is loading", h.ID, method))
	}
	args := make([]lua.LValue, 0, L.GetTop())
	for i := 2; i <= L.GetTop(); i++ {
		args = append(args, L.Get(i))
	}
	data, err := value.EncodeList(args, "argument", value.MaxArguments)
	if err != nil {
		luavm.Raise(L, err)
	}
	ctx := context.Context(in.VM.Meter())
	results, err := in.Caller.CallObject(ctx, h.ID, method, data)
	if err != nil {
		in.RaiseError(L, err)
	}
	values, err := value.DecodeList(L, results, "result")
	if err != nil {
		luavm.Raise(L, err)
	}
	for _, v := range values {
		L.Push(v)
	}
	return len(values)
}

// Identity gives an object's identity as data, with is() to ask for its class.
func (in *Instance) Identity(id objectid.ID) *lua.LTable {
	t := in.VM.L.NewTable()
	t.RawSetString("id", lua.LString(id.String()))
	t.RawSetString("class", lua.LString(id.Class))
	t.RawSetString("name", lua.LString(id.Name))
	t.Metatable = in.identityMeta
	return t
}

// identityIs is follower:is(Class) and event.from:is(Class).
func identityIs(L *lua.LState) int {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		L.RaiseError("call is with a colon: follower:is(Class)")
	}
	if ud, _ := L.Get(2).(*lua.LUserData); ud != nil {
		if c, ok := ud.Value.(*ClassRef); ok {
			L.Push(lua.LBool(t.RawGetString("class") == lua.LString(c.Name)))
			return 1
		}
	}
	L.RaiseError("is needs a class, as in follower:is(Account), not a %s", L.Get(2).Type())
	return 0
}

// Filter reads the filter argument of a follow: nil data when there is none.
func Filter(v lua.LValue) ([]byte, error) {
	if v == lua.LNil {
		return nil, nil
	}
	if _, ok := v.(*lua.LTable); !ok {
		return nil, wire.Errorf(wire.BadValue, "a filter is a table of fields, as in { kind = \"sale\" }, not a %s", v.Type())
	}
	data, err := value.Encode(v, "filter", value.MaxFilter)
	if err != nil {
		return nil, err
	}
	filter, err := value.ParseFilter(data)
	if err != nil || filter.Empty() {
		return nil, err
	}
	return filter.JSON(), nil
}
