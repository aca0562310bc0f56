package socket

import (
	"context"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/edge"
	"weir/pkg/failure"
	"weir/pkg/luavm"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
	"weir/services/gateway/internal/fanout"
)

// handle runs one handler on a VM of the pool.
func (s *Socket) handle(it item) {
	room := handlerRun
	if it.handler == "close" {
		room = 3 * handlerRun // it runs on every end
	}
	waiting, got := context.WithTimeout(s.ctx, room)
	in, err := s.c.Pool.Get(waiting)
	got()
	if err != nil {
		s.c.Log.Warn("no room for a connection's handler", "conn", s.id, "class", s.program.Name, "handler", it.handler, "error", err)
		s.end(ending{By: "overflow", Code: closeOverflow, Reason: "no room at the moment: connect again"})
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, handlerRun)
	defer cancel()
	in.Caller, in.Buckets = s.c.Caller, s.c.Buckets
	good := s.runOn(ctx, in, it)
	s.c.Pool.Put(in, good)
}

// runOn runs it on a VM. false: the VM should not serve again.
func (s *Socket) runOn(ctx context.Context, in *app.Instance, it item) bool {
	fn := in.Handler(s.program.Name, it.handler)
	if fn == nil {
		return true
	}
	b := &binding{s: s, in: in, ctx: ctx}
	conn, err := b.conn(it.handler == "close")
	if err != nil {
		s.failed(it.handler, err)
		return true
	}
	args := []lua.LValue{conn}
	switch it.handler {
	case "frame":
		v, err := value.Decode(in.VM.L, it.data, "frame")
		if err != nil {
			s.end(ending{By: "error", Code: closeBadJSON, Reason: "the frame is not JSON that an app can take"})
			return true
		}
		args = append(args, v)
	case "timer":
		args = append(args, lua.LNumber(s.missedTicks()))
	case "event":
		v, err := eventTable(in, it.event.Event)
		if err != nil {
			s.failed(it.handler, err)
			return true
		}
		args = append(args, v)
	}
	_, err = in.Call(s.c.Pool.Meter(ctx, handlerBudget), s.program.Name+"."+it.handler+" of "+s.identity.String(), fn, args...)
	if err == nil {
		err = b.keep()
	}
	if err != nil {
		s.failed(it.handler, err)
		return false
	}
	return true
}

// failed ends the socket whose handler raised.
func (s *Socket) failed(handler string, err error) {
	s.c.Log.Error("a connection's handler failed; the socket is closed", "conn", s.id, "class", s.program.Name, "handler", handler, "object", s.identity.String(), "error", err, failure.Key, failure.Of(err))
	reason := "the connection's program failed"
	if s.c.Explain {
		reason = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), maxReason)], "")
	}
	s.end(ending{By: "error", Code: closeFailed, Reason: reason})
}

// eventTable is the event argument of a handler, as of a receives handler.
func eventTable(in *app.Instance, e edge.Event) (lua.LValue, error) {
	L := in.VM.L
	data, err := value.Decode(L, e.Data, "data")
	if err != nil {
		return nil, err
	}
	t := L.NewTable()
	t.RawSetString("topic", lua.LString(e.Topic))
	t.RawSetString("data", data)
	t.RawSetString("seq", lua.LNumber(e.Seq))
	t.RawSetString("at", lua.LNumber(e.At))
	t.RawSetString("id", lua.LString(e.ID()))
	t.RawSetString("from", in.Identity(e.Publisher))
	return t, nil
}

// binding is `conn` for the run of one handler.
type binding struct {
	s     *Socket
	in    *app.Instance
	ctx   context.Context
	state lua.LValue
}

// connValue is what the userdata holds.
type connValue struct{}

// LuaKind names it in errors of the converter.
func (connValue) LuaKind() string { return "connection" }

func (b *binding) conn(closed bool) (lua.LValue, error) {
	L, s := b.in.VM.L, b.s
	s.mu.Lock()
	state, end := s.state, s.ending
	s.mu.Unlock()
	v, err := value.Decode(L, state, "conn.state")
	if err != nil {
		return nil, err
	}
	b.state = v
	ud := L.NewUserData()
	ud.Value = connValue{}
	members := map[string]lua.LValue{"name": lua.LString(s.identity.Name), "class": lua.LString(s.identity.Class)}
	if closed && end != nil {
		t := L.NewTable()
		t.RawSetString("by", lua.LString(end.By))
		t.RawSetString("reason", lua.LString(end.Reason))
		members["closed"] = t
	}
	for name, fn := range map[string]lua.LGFunction{"follow": b.follow, "unfollow": b.unfollow, "send": b.send, "close": b.close} {
		members[name] = L.NewFunction(func(L *lua.LState) int {
			if L.Get(1) != lua.LValue(ud) {
				L.RaiseError("call %s with a colon: conn:%s(…)", name, name)
			}
			return fn(L)
		})
	}
	meta := L.NewTable()
	meta.RawSetString("__metatable", lua.LString("locked"))
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		key := L.Get(2).String()
		if key == "state" {
			L.Push(b.state)
			return 1
		}
		if m, ok := members[key]; ok {
			L.Push(m)
			return 1
		}
		return 0
	}))
	meta.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		if L.Get(2) != lua.LString("state") {
			L.RaiseError("conn.%s cannot be assigned: keep what lasts in conn.state", L.Get(2).String())
		}
		if L.Get(3).Type() != lua.LTTable {
			L.RaiseError("conn.state is a table, not a %s", L.Get(3).Type())
		}
		b.state = L.Get(3)
		return 0
	}))
	ud.Metatable = meta
	return ud, nil
}

// keep stores conn.state after a handler that did not raise.
func (b *binding) keep() error {
	data, err := value.Encode(b.state, "conn.state", value.MaxState)
	if err != nil {
		return err
	}
	b.s.mu.Lock()
	b.s.state = data
	b.s.mu.Unlock()
	return nil
}

func topic(L *lua.LState, n int) string {
	t, ok := L.Get(n).(lua.LString)
	if !ok || !objectid.ValidWord(string(t)) {
		luavm.Raise(L, wire.Errorf(wire.NoSuchTopic, "%s cannot be a topic", L.Get(n).String()))
	}
	return string(t)
}

// follow is conn:follow(handle, topic, filter?).
func (b *binding) follow(L *lua.LState) int {
	h := app.CheckHandle(L, 2)
	t := topic(L, 3)
	filter, err := app.Filter(L.Get(4))
	if err != nil {
		luavm.Raise(L, err)
	}
	b.s.mu.Lock()
	over := b.s.ending != nil
	b.s.follows[h.ID] = true
	b.s.mu.Unlock()
	if over {
		luavm.Raise(L, wire.Errorf(wire.Unavailable, "the connection has ended: it can follow nothing more"))
	}
	b.s.c.Pool.Wait(b.in.VM.Meter(), func() { err = b.s.c.Fanout.Follow(b.in.VM.Meter(), b.s, h.ID, t, filter) })
	if err != nil {
		b.in.RaiseError(L, err)
	}
	return 0
}

// unfollow is conn:unfollow(handle, topic).
func (b *binding) unfollow(L *lua.LState) int {
	h := app.CheckHandle(L, 2)
	t := topic(L, 3)
	var err error
	b.s.c.Pool.Wait(b.in.VM.Meter(), func() { err = b.s.c.Fanout.Unfollow(b.in.VM.Meter(), b.s, h.ID, t) })
	if err != nil {
		b.in.RaiseError(L, err)
	}
	return 0
}

// send is conn:send(value): one JSON text frame.
func (b *binding) send(L *lua.LState) int {
	data, err := value.Encode(L.Get(2), "frame", value.MaxFrame)
	if err != nil {
		luavm.Raise(L, err)
	}
	b.s.frame(data)
	return 0
}

// close is conn:close(code?, reason?).
func (b *binding) close(L *lua.LState) int {
	code, reason := closeNormal, ""
	switch v := L.Get(2).(type) {
	case *lua.LNilType:
	case lua.LNumber:
		code = int(v)
		if lua.LNumber(code) != v || code != closeNormal && (code < 3000 || code > 4999) {
			luavm.Raise(L, wire.Errorf(wire.BadValue, "conn:close takes the code 1000, or one from 3000 to 4999, not %v", v))
		}
	default:
		luavm.Raise(L, wire.Errorf(wire.BadValue, "conn:close takes a number and a reason"))
	}
	switch v := L.Get(3).(type) {
	case *lua.LNilType:
	case lua.LString:
		reason = string(v)
	default:
		luavm.Raise(L, wire.Errorf(wire.BadValue, "the reason is a string, not a %s", v.Type()))
	}
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		luavm.Raise(L, wire.Errorf(wire.BadValue, "the reason has at most 123 bytes of UTF-8"))
	}
	b.s.end(ending{By: "program", Code: code, Reason: reason})
	return 0
}

var _ fanout.Socket = (*Socket)(nil)
