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

// follow is state:follow(handle, topic, filter?).
func (s *stateBinding) follow(L *lua.LState) int {
	h := app.CheckHandle(L, 2)
	topic := s.topic(L, 3)
	q := edge.Request{Kind: edge.Follow, Key: edge.Key{Topic: topic}}
	filter, err := app.Filter(L.Get(4))
	if err != nil {
		luavm.Raise(L, err)
	}
	q.FilterJSON = filter
	s.operate(L, h.ID, q)
	if key := h.ID.Class + ":" + topic; !s.a.class.Receives[key] {
		s.a.r.c.Log.Warn("an object follows what its class does not receive: the events will be consumed and discarded", "object", s.a.id.String(), "receives", key)
	}
	return 0
}

// unfollow is state:unfollow(handle, topic).
func (s *stateBinding) unfollow(L *lua.LState) int {
	h := app.CheckHandle(L, 2)
	s.operate(L, h.ID, edge.Request{Kind: edge.Unfollow, Key: edge.Key{Topic: s.topic(L, 3)}})
	return 0
}

// operate asks a publisher for a change of this object's edges and keeps the answer, in the turn's transaction and,
// since the edge stands even if the turn does not, for after it.
func (s *stateBinding) operate(L *lua.LState, publisher objectid.ID, q edge.Request) {
	a, t := s.a, s.a.t
	if publisher == a.id {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "%s cannot follow itself: it knows its events already", a.id))
	}
	if err := a.leaveFirst(t.ctx); err != nil {
		luavm.Raise(L, err)
	}
	l := a.link(publisher)
	q = a.fill(l, q)
	l.asking = q.ID // an older question's answer is only a hint from now on
	reply, err := a.r.c.Client.RouteEdge(t.meter, wire.EdgeRequest{To: publisher.String(), Operations: []edge.Request{q}, Chain: t.chain})
	l.asking = 0
	if err == nil && len(reply.Errors) > 0 && reply.Errors[0] != nil {
		err = reply.Errors[0]
	}
	if err != nil {
		a.in.RaiseError(L, err)
	}
	if reply.Answer == nil || reply.Answer.Set.Owner != a.db.Own {
		luavm.Raise(L, wire.Errorf(wire.Internal, "%s answered a follow without the edges", publisher))
	}
	t.answers = append(t.answers, heard{publisher.String(), *reply.Answer, l.c, l.pos})
	if _, err := a.takeSet(l, *reply.Answer, true); err != nil {
		luavm.Raise(L, err)
	}
}

// dropFollowers is state:drop_followers(handle), or with a row of followers().
func (s *stateBinding) dropFollowers(L *lua.LState) int {
	var id objectid.ID
	switch v := L.Get(2).(type) {
	case *lua.LTable:
		text, _ := v.RawGetString("id").(lua.LString)
		parsed, err := objectid.Parse(string(text))
		if err != nil {
			luavm.Raise(L, wire.Errorf(wire.BadValue, "drop_followers takes a handle, or a row of followers() with its id"))
		}
		id = parsed
	default:
		id = app.CheckHandle(L, 2).ID
	}
	changes := s.a.db.Edges.RemoveIdentity(id.String())
	if len(changes) > 0 {
		if err := s.a.db.Apply(changes); err != nil {
			s.sqlRaise(L, err)
		}
		s.a.t.edges = true
	}
	return 0
}

// followers is state:followers(topic?): one row per edge.
func (s *stateBinding) followers(L *lua.LState) int {
	topic := ""
	if L.Get(2) != lua.LNil {
		topic = s.topic(L, 2)
	}
	list := luavm.NewArray(L)
	rows := s.a.edgeRows(topic)
	s.a.t.meter.Work(int64(len(rows)) * 10)
	for i, row := range rows {
		id, err := objectid.Parse(row.Follower)
		if err != nil {
			luavm.Raise(L, err)
		}
		t := s.in.Identity(id)
		t.RawSetString("topic", lua.LString(row.Topic))
		t.RawSetString("transport", lua.LString(row.Transport))
		if row.Filter != nil {
			v, err := value.Decode(L, row.Filter, "filter")
			if err != nil {
				luavm.Raise(L, err)
			}
			t.RawSetString("filter", v)
		}
		list.RawSetInt(i+1, t)
	}
	L.Push(list)
	return 1
}
