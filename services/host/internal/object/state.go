package object

import (
	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/edge"
	"weir/pkg/luavm"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// stateBinding is `state` in one VM.
type stateBinding struct {
	a       *activation
	in      *app.Instance
	value   *lua.LUserData
	scratch *lua.LTable
	members map[string]lua.LValue
}

// stateValue is what the userdata holds, so that the converter can name it.
type stateValue struct{ name string }

// LuaKind names it in errors of the converter.
func (s *stateValue) LuaKind() string { return s.name }

func newStateBinding(a *activation, in *app.Instance) *stateBinding {
	L := in.VM.L
	s := &stateBinding{a: a, in: in, scratch: L.NewTable(), members: map[string]lua.LValue{}}
	s.value = L.NewUserData()
	s.value.Value = &stateValue{"state"}
	meta := L.NewTable()
	meta.RawSetString("__metatable", lua.LString("locked"))
	meta.RawSetString("__index", L.NewFunction(s.index))
	meta.RawSetString("__newindex", L.NewFunction(s.newindex))
	s.value.Metatable = meta

	s.members["name"] = lua.LString(a.id.Name)
	s.members["class"] = lua.LString(a.id.Class)
	s.members["id"] = lua.LString(a.id.String())
	s.members["now"] = L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LNumber(s.turn(L).now))
		return 1
	})
	for name, fn := range map[string]lua.LGFunction{"publish": s.publish, "set_alarm": s.setAlarm, "clear_alarm": s.clearAlarm,
		"follow": s.follow, "unfollow": s.unfollow, "drop_followers": s.dropFollowers, "followers": s.followers} {
		s.members[name] = L.NewFunction(s.method(name, fn))
	}
	s.members["sql"] = s.face("state.sql", map[string]lua.LGFunction{"exec": s.sqlExec, "query": s.sqlQuery, "query_one": s.sqlQueryOne})
	s.members["store"] = s.face("state.store", map[string]lua.LGFunction{"get": s.storeGet, "set": s.storeSet, "delete": s.storeDelete, "list": s.storeList})

	return s
}

// face makes a member with methods, such as state.sql.
func (s *stateBinding) face(name string, fns map[string]lua.LGFunction) lua.LValue {
	L := s.in.VM.L
	ud := L.NewUserData()
	ud.Value = &stateValue{name}
	methods := map[string]lua.LValue{}
	for n, fn := range fns {
		methods[n] = L.NewFunction(func(L *lua.LState) int {
			if L.Get(1) != lua.LValue(ud) {
				L.RaiseError("call %s with a colon: %s:%s(…)", n, name, n)
			}
			s.turn(L)
			return fn(L)
		})
	}
	meta := L.NewTable()
	meta.RawSetString("__metatable", lua.LString("locked"))
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		m, ok := methods[L.Get(2).String()]
		if !ok {
			L.RaiseError("%s has no %s", name, L.Get(2).String())
		}
		L.Push(m)
		return 1
	}))
	ud.Metatable = meta
	return ud
}

// method checks what holds for every method of state.
func (s *stateBinding) method(name string, fn lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		if L.Get(1) != lua.LValue(s.value) {
			L.RaiseError("call %s with a colon: state:%s(…)", name, name)
		}
		s.turn(L)
		return fn(L)
	}
}

// turn gives the running turn, or raises: state is of no use outside its call, nor once SQLite has ended the
// transaction.
func (s *stateBinding) turn(L *lua.LState) *turn {
	t := s.a.t
	if t == nil {
		luavm.Raise(L, wire.Errorf(wire.Internal, "state can be used only while its call runs"))
	}
	if s.a.db.Ended() {
		luavm.Raise(L, wire.Errorf(wire.BadSQL, "SQLite ended the transaction: the call fails, and nothing more can be done in it"))
	}
	return t
}

// index finds a member, a method of the class, or scratch.
func (s *stateBinding) index(L *lua.LState) int {
	key := L.Get(2)
	if k, ok := key.(lua.LString); ok {
		if m, ok := s.members[string(k)]; ok {
			L.Push(m)
			return 1
		}
		if fn := s.in.Function(s.a.id.Class, "", string(k)); fn != nil {
			L.Push(fn)
			return 1
		}
	}
	L.Push(s.scratch.RawGet(key))
	return 1
}

// newindex sets scratch: it lives while the object is awake and no call fails.
func (s *stateBinding) newindex(L *lua.LState) int {
	key, v := L.Get(2), L.Get(3)
	if k, ok := key.(lua.LString); ok {
		if app.StateMembers[string(k)] {
			L.RaiseError("state.%s is a member of state and cannot be assigned", string(k))
		}
		if s.in.Function(s.a.id.Class, "", string(k)) != nil {
			L.RaiseError("state.%s is a method of %s and cannot be assigned", string(k), s.a.id.Class)
		}
	}
	if key == lua.LNil {
		L.RaiseError("state cannot be indexed with nil")
	}
	s.scratch.RawSet(key, v)
	return 0
}

// publish is state:publish(topic, data?).
func (s *stateBinding) publish(L *lua.LState) int {
	topic := s.topic(L, 2)
	if _, ok := s.a.class.Publishes[topic]; !ok {
		luavm.Raise(L, wire.Errorf(wire.NoSuchTopic, "%s publishes no topic %q: add it to publishes; %s", s.a.id.Class, topic, s.a.class.Topics()))
	}
	data := []byte("null")
	if v := L.Get(3); v != lua.LNil {
		var err error
		if data, err = value.Encode(v, "data", value.MaxEvent); err != nil {
			if whole, bad := value.Encode(v, "data", 0); bad == nil {
				err = wire.Errorf(wire.BadValue, "the event's data has %d bytes as JSON, more than the %d that an event may have: publish a key, and keep the rest in SQL", len(whole), value.MaxEvent)
			}
			luavm.Raise(L, err)
		}
	}
	t := s.a.t
	e, err := s.a.db.Append(t.now, topic, data)
	if err != nil {
		luavm.Raise(L, err)
	}
	t.rows = append(t.rows, e)
	return 0
}

func (s *stateBinding) topic(L *lua.LState, n int) string {
	v, ok := L.Get(n).(lua.LString)
	if !ok {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "a topic is a string, not a %s", L.Get(n).Type()))
	}
	if !objectid.ValidWord(string(v)) {
		luavm.Raise(L, wire.Errorf(wire.NoSuchTopic, "%q cannot be a topic", string(v)))
	}
	return string(v)
}

// setAlarm is state:set_alarm("10m").
func (s *stateBinding) setAlarm(L *lua.LState) int {
	if !s.a.class.Hooks["alarm"] {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "%s has no alarm hook: add hooks = { alarm = function(state) … end }", s.a.id.Class))
	}
	ms, err := app.Duration(L.Get(2))
	if err != nil {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "set_alarm: %v", err))
	}
	t := s.a.t
	due := now() + ms
	if err := s.a.db.SetAlarm(alarmAt(due, t.now), false); err != nil {
		luavm.Raise(L, err)
	}
	t.alarm, t.due = true, due
	return 0
}

// clearAlarm is state:clear_alarm().
func (s *stateBinding) clearAlarm(L *lua.LState) int {
	if err := s.a.db.ClearAlarm(); err != nil {
		luavm.Raise(L, err)
	}
	s.a.t.alarm, s.a.t.due = true, 0
	return 0
}

// eventTable is the event argument of a receives handler.
func (a *activation) eventTable(e edge.Event) lua.LValue {
	L := a.in.VM.L
	t := L.NewTable()
	t.RawSetString("topic", lua.LString(e.Topic))
	t.RawSetString("seq", lua.LNumber(e.Seq))
	t.RawSetString("at", lua.LNumber(e.At))
	t.RawSetString("id", lua.LString(e.ID()))
	t.RawSetString("from", a.in.Identity(e.Publisher))
	data, err := value.Decode(L, e.Data, "data")
	if err != nil {
		a.r.c.Log.Error("an event's data cannot be read", "object", a.id.String(), "error", err)
		data = lua.LNil
	}
	t.RawSetString("data", data)
	return t
}
