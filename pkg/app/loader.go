package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/objectid"
)

// reservedKeys of a class are its sections; every other key is a method.
var reservedKeys = map[string]bool{"migrations": true, "publishes": true, "receives": true, "hooks": true, "admit": true, "expire": true}

var hookNames = map[string]bool{"init": true, "alarm": true, "follow": true}

// StateMembers are the names that `state` has itself: no method may hide one.
var StateMembers = map[string]bool{"sql": true, "store": true, "publish": true, "set_alarm": true, "clear_alarm": true,
	"name": true, "class": true, "id": true, "now": true, "follow": true, "unfollow": true, "drop_followers": true,
	"followers": true, "destroy": true}

// loader collects what an app declares, and what is wrong with it.
type loader struct {
	app      *App
	in       *Instance
	lines    *lineIndex
	mistakes []Mistake
	warnings []Mistake
	used     map[string]place // classes referred to, and where first

	receivers map[string]place // by class and key of receives
}

func newLoader(a *App) *loader {
	return &loader{app: a, used: map[string]place{}, receivers: map[string]place{}, lines: newLineIndex()}
}

func (l *loader) load() {
	chunk, err := l.app.chunk("main.lua")
	if err != nil {
		l.syntax(err)
		return
	}
	l.lines.add(chunk)
	l.in = l.app.newInstance(nil)
	l.in.loader = l
	defer l.in.Close()
	if err := l.app.setup(l.in); err != nil {
		l.wrong(place{file: "main.lua"}, "%v", err)
		return
	}
	if _, err := l.in.VM.Run(luavm.NewMeter(context.Background(), loadBudget), chunk); err != nil {
		l.raised(err)
	}
	for name, where := range l.used {
		if l.app.Classes[name] == nil && !l.lines.declares("object", name) {
			l.wrong(where, "objects %q: the app declares no class %q", name, name)
		}
	}
	for _, c := range l.app.Classes {
		for key := range c.Receives {
			class, topic, _ := strings.Cut(key, ":")
			of := l.app.Classes[class]
			if of == nil {
				l.warnings = append(l.warnings, Mistake{l.receivers[c.Name+key].file, l.receivers[c.Name+key].line, fmt.Sprintf("%s receives %q, but the app declares no class %q", c.Name, key, class)})
			} else if _, ok := of.Publishes[topic]; !ok {
				l.warnings = append(l.warnings, Mistake{l.receivers[c.Name+key].file, l.receivers[c.Name+key].line, fmt.Sprintf("%s receives %q, but %s publishes no topic %q", c.Name, key, class, topic)})
			}
		}
	}
	l.variables()
	slices.SortStableFunc(l.warnings, func(x, y Mistake) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
}

func (l *loader) wrong(at place, format string, args ...any) {
	l.mistakes = append(l.mistakes, Mistake{at.file, at.line, fmt.Sprintf(format, args...)})
}

func (l *loader) syntax(err error) {
	var s *luavm.SyntaxError
	if errors.As(err, &s) {
		l.wrong(place{s.File, s.Line}, "%s", s.Msg)
		return
	}
	l.wrong(place{file: "main.lua"}, "%v", err)
}

var position = regexp.MustCompile(`^([^\s:]+\.lua):(\d+): `)

// raised turns an error of running main.lua into a mistake.
func (l *loader) raised(err error) {
	text := err.Error()
	at := place{file: "main.lua"}
	if m := position.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[2])
		at, text = place{m[1], n}, text[len(m[0]):]
	} else if e := (*luavm.Error)(nil); errors.As(err, &e) && len(e.Frames()) > 0 {
		at = place{e.Frames()[0].File, e.Frames()[0].Line}
	}
	l.wrong(at, "%s", text)
}

func (l *loader) refers(at place, name string) {
	if !objectid.ValidClass(name) {
		l.wrong(at, "objects %q: a class name has letters, digits and _, begins with a letter, and at most 64 bytes", name)
		return
	}
	if _, ok := l.used[name]; !ok {
		l.used[name] = at
	}
}

// class takes one declaration of a class.
func (l *loader) class(at place, name string, body *lua.LTable) {
	d := l.lines.next("object", name, at)
	if !objectid.ValidClass(name) {
		l.wrong(d.at, "object %q: a class name has letters, digits and _, begins with a letter, and at most 64 bytes", name)
		return
	}
	if l.app.Classes[name] != nil || l.app.Connections[name] != nil {
		l.wrong(d.at, "object %q is declared a second time", name)
		return
	}
	c := &Class{Name: name, Publishes: map[string]Policy{}, Receives: map[string]bool{}, Hooks: map[string]bool{}, Methods: map[string]bool{}}
	l.app.Classes[name] = c
	body.ForEach(func(k, v lua.LValue) {
		key, ok := k.(lua.LString)
		if !ok {
			l.wrong(d.at, "object %q: the key %s is not a name", name, k.String())
			return
		}
		at := d.key(string(key))
		switch key {
		case "migrations":
			l.migrations(at, c, v)
		case "publishes":
			l.publishes(d, c, v)
		case "receives":
			l.receives(d, c, v)
		case "hooks":
			l.hooks(d, c, v)
		case "admit":
			l.wants(at, v, lua.LTFunction, "admit")
		case "expire":
			l.wants(at, v, lua.LTString, "expire")
		default:
			l.method(at, c, string(key), v)
		}
	})
	for topic, p := range c.Publishes {
		if p == ByHook && !c.Hooks["follow"] {
			l.warnings = append(l.warnings, Mistake{d.key("publishes").file, d.key("publishes").line,
				fmt.Sprintf("%s publishes %q, but has no follow hook: every follow of it is refused", name, topic)})
		}
	}
}

func (l *loader) wants(at place, v lua.LValue, t lua.LValueType, what string) bool {
	if v.Type() != t {
		l.wrong(at, "%s must be a %s, not a %s", what, t, v.Type())
		return false
	}
	return true
}

func (l *loader) method(at place, c *Class, name string, v lua.LValue) {
	switch {
	case v.Type() != lua.LTFunction:
		hint := ""
		if v.Type() == lua.LTTable {
			hint = ": the sections of a class are migrations, publishes, receives and hooks"
		}
		l.wrong(at, "%s.%s must be a function (a method), not a %s%s", c.Name, name, v.Type(), hint)
	case !objectid.ValidWord(name):
		l.wrong(at, "%s: %q cannot name a method: letters, digits and _, at most 64 bytes", c.Name, name)
	case hookNames[name]:
		l.wrong(at, "%s.%s: a hook belongs into hooks = { %s = … }", c.Name, name, name)
	case StateMembers[name]:
		l.wrong(at, "%s.%s: state has a member of that name; call the method otherwise", c.Name, name)
	default:
		c.Methods[name] = true
	}
}

func (l *loader) migrations(at place, c *Class, v lua.LValue) {
	if !l.wants(at, v, lua.LTString, c.Name+".migrations") {
		return
	}
	all, found := l.app.migrations(v.String())
	if !found {
		l.wrong(at, "%s.migrations: the app has no folder %q with .sql files", c.Name, v.String())
		return
	}
	c.Migrations, c.MigrationsDir = all, v.String()
}

func (l *loader) publishes(d *declaration, c *Class, v lua.LValue) {
	if !l.wants(d.key("publishes"), v, lua.LTTable, c.Name+".publishes") {
		return
	}
	v.(*lua.LTable).ForEach(func(k, v lua.LValue) {
		topic, policy := "", ByHook
		switch k := k.(type) {
		case lua.LNumber:
			s, ok := v.(lua.LString)
			if !ok {
				l.wrong(d.key("publishes"), "%s.publishes: entry %d must be the name of a topic, not a %s", c.Name, int(k), v.Type())
				return
			}
			topic = string(s)
		case lua.LString:
			topic = string(k)
			switch v {
			case lua.LString("self"):
				policy = Self
			case lua.LString("public"):
				policy = Public
			default:
				l.wrong(d.sub("publishes", topic), "%s.publishes.%s: the policy is \"self\" or \"public\", not %s (a bare name leaves it to the follow hook)", c.Name, topic, show(v))
				return
			}
		default:
			l.wrong(d.key("publishes"), "%s.publishes: %s is not the name of a topic", c.Name, show(k))
			return
		}
		at := d.sub("publishes", topic)
		if !objectid.ValidWord(topic) {
			l.wrong(at, "%s.publishes: %q cannot name a topic: letters, digits and _, at most 64 bytes", c.Name, topic)
			return
		}
		if _, ok := c.Publishes[topic]; ok {
			l.wrong(at, "%s.publishes: %q is declared a second time", c.Name, topic)
			return
		}
		c.Publishes[topic] = policy
	})
}

func (l *loader) receives(d *declaration, c *Class, v lua.LValue) {
	if !l.wants(d.key("receives"), v, lua.LTTable, c.Name+".receives") {
		return
	}
	v.(*lua.LTable).ForEach(func(k, v lua.LValue) {
		key := k.String()
		at := d.sub("receives", key)
		class, topic, ok := strings.Cut(key, ":")
		if k.Type() != lua.LTString || !ok || !objectid.ValidClass(class) || !objectid.ValidWord(topic) {
			l.wrong(at, "%s.receives: the key %s must have the form \"Class:topic\"", c.Name, show(k))
			return
		}
		if l.wants(at, v, lua.LTFunction, fmt.Sprintf("%s.receives[%q]", c.Name, key)) {
			c.Receives[key] = true
			l.receivers[c.Name+key] = at
		}
	})
}

func (l *loader) hooks(d *declaration, c *Class, v lua.LValue) {
	if !l.wants(d.key("hooks"), v, lua.LTTable, c.Name+".hooks") {
		return
	}
	v.(*lua.LTable).ForEach(func(k, v lua.LValue) {
		at := d.sub("hooks", k.String())
		if !hookNames[k.String()] {
			l.wrong(at, "%s.hooks: there is no hook %s: the hooks are init, alarm and follow", c.Name, show(k))
			return
		}
		if l.wants(at, v, lua.LTFunction, c.Name+".hooks."+k.String()) {
			c.Hooks[k.String()] = true
		}
	})
}

func show(v lua.LValue) string {
	if v.Type() == lua.LTString {
		return strconv.Quote(v.String())
	}
	if v.Type() == lua.LTNumber || v.Type() == lua.LTBool {
		return v.String()
	}
	return "a " + v.Type().String()
}
