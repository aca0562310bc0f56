package app

import (
	"time"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/objectid"
)

// connection takes one declaration of a websocket's program.
func (l *loader) connection(at place, name string, body *lua.LTable) {
	d := l.lines.next("connection", name, at)
	if !objectid.ValidClass(name) {
		l.wrong(d.at, "connection %q: the name has letters, digits and _, begins with a letter, and at most 64 bytes", name)
		return
	}
	if l.app.Connections[name] != nil || l.app.Classes[name] != nil {
		l.wrong(d.at, "connection %q is declared a second time", name)
		return
	}
	c := &Connection{Name: name, Handlers: map[string]bool{}}
	l.app.Connections[name] = c
	body.ForEach(func(k, v lua.LValue) {
		at := d.key(k.String())
		switch k {
		case lua.LString("open"), lua.LString("frame"), lua.LString("close"):
			if l.wants(at, v, lua.LTFunction, name+"."+k.String()) {
				c.Handlers[k.String()] = true
			}
		case lua.LString("event"):
			if v == lua.LString("forward") {
				c.Forward = true
			} else if v.Type() == lua.LTFunction {
				c.Handlers["event"] = true
			} else {
				l.wrong(at, "%s.event must be a function or \"forward\", not %s", name, show(v))
			}
		case lua.LString("timer"):
			l.timer(at, c, v)
		default:
			l.wrong(at, "%s: there is no handler %s: a connection has open, frame, event, timer and close", name, show(k))
		}
	})
}

func (l *loader) timer(at place, c *Connection, v lua.LValue) {
	t, ok := v.(*lua.LTable)
	if !ok {
		l.wrong(at, "%s.timer must be a table: { every = \"30s\", run = function(conn, missed) … end }", c.Name)
		return
	}
	ms, err := Duration(t.RawGetString("every"))
	if err != nil {
		l.wrong(at, "%s.timer.every: %v", c.Name, err)
	} else if ms < 1000 {
		l.wrong(at, "%s.timer.every must be one second or longer", c.Name)
	}
	t.ForEach(func(k, _ lua.LValue) {
		if k != lua.LString("every") && k != lua.LString("run") {
			l.wrong(at, "%s.timer: there is no %s: a timer has every and run", c.Name, show(k))
		}
	})
	if t.RawGetString("run").Type() != lua.LTFunction {
		l.wrong(at, "%s.timer.run must be a function, not a %s", c.Name, t.RawGetString("run").Type())
		return
	}
	c.Handlers["timer"], c.Every = true, time.Duration(ms)*time.Millisecond
}

func (l *loader) on(at place, name string, fn lua.LValue, again bool) {
	switch {
	case name != "fetch":
		l.wrong(at, "on %q: there is only on \"fetch\"", name)
	case fn.Type() != lua.LTFunction:
		l.wrong(at, "on \"fetch\" needs a function, not a %s", fn.Type())
	case again:
		l.wrong(at, "on \"fetch\" is declared a second time")
	default:
		l.app.Fetch = true
	}
}
