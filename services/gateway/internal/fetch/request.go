package fetch

import (
	"net/http"
	"sort"
	"strings"

	"github.com/gorilla/websocket"
	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
	"weir/pkg/objectid"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// request is one request as its handler sees it.
type request struct {
	h       *Handler
	in      *app.Instance
	r       *http.Request
	upgrade *Upgrade
	token   *lua.LUserData // what request:upgrade returned
}

// upgradeValue is what that holds.
type upgradeValue struct{}

// LuaKind names it in errors of the converter.
func (upgradeValue) LuaKind() string { return "websocket upgrade" }

func (rq *request) table(body string) *lua.LTable {
	L, r := rq.in.VM.L, rq.r
	t := L.NewTable()
	t.RawSetString("method", lua.LString(r.Method))
	t.RawSetString("path", lua.LString(r.URL.Path))
	t.RawSetString("uri", lua.LString(r.RequestURI))
	t.RawSetString("body", lua.LString(body))
	t.RawSetString("remote", lua.LString(rq.h.c.Remote(r)))
	query := L.NewTable()
	for k, vs := range r.URL.Query() {
		query.RawSetString(k, lua.LString(vs[len(vs)-1]))
	}
	t.RawSetString("query", query)
	headers := L.NewTable()
	names := make([]string, 0, len(r.Header))
	for k := range r.Header {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		headers.RawSetString(strings.ToLower(k), lua.LString(strings.Join(r.Header[k], ", ")))
	}
	if r.Host != "" {
		headers.RawSetString("host", lua.LString(r.Host))
	}
	t.RawSetString("headers", headers)
	if websocket.IsWebSocketUpgrade(r) && r.ProtoAtLeast(1, 1) {
		t.RawSetString("upgrade", L.NewFunction(func(L *lua.LState) int {
			if L.Get(1) != lua.LValue(t) {
				L.RaiseError("call upgrade with a colon: request:upgrade(Program, seed, identity)")
			}
			return rq.doUpgrade(L)
		}))
	}
	return t
}

// doUpgrade is request:upgrade(Session, seed?, Account("ada")).
func (rq *request) doUpgrade(L *lua.LState) int {
	bad := func(format string, args ...any) { luavm.Raise(L, wire.Errorf(wire.BadValue, format, args...)) }
	if rq.upgrade != nil {
		bad("this request was upgraded already")
	}
	u := &Upgrade{}
	if ud, ok := L.Get(2).(*lua.LUserData); ok {
		if c, ok := ud.Value.(*app.ConnectionRef); ok {
			u.Program = rq.h.c.App.Connections[c.Name]
		}
	}
	if u.Program == nil {
		bad("request:upgrade needs a program that connection \"Name\" { … } gave, not a %s", L.Get(2).Type())
	}
	if seed := L.Get(3); seed != lua.LNil {
		if seed.Type() != lua.LTTable {
			bad("the seed of conn.state is a table, not a %s", seed.Type())
		}
		data, err := value.Encode(seed, "seed", value.MaxState)
		if err != nil {
			luavm.Raise(L, err)
		}
		u.Seed = data
	}
	var h *app.Handle
	if ud, ok := L.Get(4).(*lua.LUserData); ok {
		h, _ = ud.Value.(*app.Handle)
	}
	if h == nil {
		bad("the identity of a connection is a handle such as Account(\"ada\"), not a %s", L.Get(4).Type())
		return 0
	}
	if err := h.Check(); err != nil {
		luavm.Raise(L, err)
	}
	if rq.h.c.App.Classes[h.ID.Class] == nil {
		luavm.Raise(L, wire.Errorf(wire.NoSuchClass, "the app declares no class %q; %s", h.ID.Class, rq.h.c.App.ClassNames()))
	}
	u.Identity = objectid.ID{Class: h.ID.Class, Name: h.ID.Name}
	rq.upgrade = u
	rq.token = L.NewUserData()
	rq.token.Value = upgradeValue{}
	L.Push(rq.token)
	return 1
}
