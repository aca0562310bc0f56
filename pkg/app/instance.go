package app

import (
	"context"
	"fmt"
	"path"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// Instance is the app loaded into one VM. It is not safe for concurrent use.
type Instance struct {
	VM      *luavm.VM
	App     *App
	Caller  Caller  // nil while nothing may be called
	Buckets Buckets // likewise

	classes      map[string]*lua.LTable
	connections  map[string]*lua.LTable
	fetch        lua.LValue
	handleMeta   *lua.LTable
	classMeta    *lua.LTable
	identityMeta *lua.LTable
	methods      map[string]*lua.LFunction
	modules      map[string]lua.LValue
	loading      []string
	nested       nested
	loader       *loader // only while the app itself is being loaded
	sealed       bool    // the top level has run
}

// loadBudget bounds the instructions of loading an app into a VM.
const loadBudget = 20_000_000

// Instance loads the app into a new VM. print is where print() goes.
func (a *App) Instance(print func(string)) (*Instance, error) {
	in := a.newInstance(print)
	if err := a.setup(in); err != nil {
		in.Close()
		return nil, err
	}
	chunk, err := a.chunk("main.lua")
	if err == nil {
		_, err = in.VM.Run(luavm.NewMeter(context.Background(), loadBudget), chunk)
	}
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("app: load %s: %w", a.Name, err)
	}
	in.VM.Freeze()
	in.sealed = true
	return in, nil
}

func (a *App) newInstance(print func(string)) *Instance {
	return &Instance{VM: luavm.New(luavm.Options{Print: print}), App: a, classes: map[string]*lua.LTable{}, connections: map[string]*lua.LTable{},
		methods: map[string]*lua.LFunction{}, modules: map[string]lua.LValue{}}
}

// setup puts the platform's functions into the VM.
func (a *App) setup(in *Instance) error {
	in.refs()
	L := in.VM.L
	in.VM.SetGlobal("object", L.NewFunction(in.luaObject))
	in.VM.SetGlobal("objects", L.NewFunction(in.luaObjects))
	in.VM.SetGlobal("connection", L.NewFunction(in.luaConnection))
	in.VM.SetGlobal("on", L.NewFunction(in.luaOn))
	in.VM.SetGlobal("secret", L.NewFunction(in.luaSecret))
	in.VM.SetGlobal("require", L.NewFunction(in.luaRequire))
	in.VM.SetGlobal("kv", L.NewFunction(in.luaKV))
	in.VM.SetGlobal("getfile", L.NewFunction(in.luaGetfile))
	if a.options.Library != nil {
		return a.options.Library(in)
	}
	return nil
}

// Close frees the VM.
func (in *Instance) Close() { in.VM.Close() }

// Function gives a method, hook ("hooks" as section) or receives handler ("receives") of a class, nil if it has none.
func (in *Instance) Function(class, section, name string) *lua.LFunction {
	t := in.classes[class]
	if t == nil {
		return nil
	}
	if section != "" {
		if t, _ = t.RawGetString(section).(*lua.LTable); t == nil {
			return nil
		}
	} else if reservedKeys[name] {
		return nil
	}
	fn, _ := t.RawGetString(name).(*lua.LFunction)
	return fn
}

// Handler gives a handler of a connection program, nil if it has none.
func (in *Instance) Handler(connection, name string) *lua.LFunction {
	t := in.connections[connection]
	if t == nil {
		return nil
	}
	if name == "timer" {
		if t, _ = t.RawGetString(name).(*lua.LTable); t == nil {
			return nil
		}
		name = "run"
	}
	fn, _ := t.RawGetString(name).(*lua.LFunction)
	return fn
}

// Fetch gives the on "fetch" handler, nil without one.
func (in *Instance) Fetch() lua.LValue { return in.fetch }

// ClassRef gives a class as a value of this VM.
func (in *Instance) ClassRef(name string) lua.LValue {
	ud := in.VM.L.NewUserData()
	ud.Value, ud.Metatable = &ClassRef{name}, in.classMeta
	return ud
}

func (in *Instance) topLevel(L *lua.LState, what string) {
	if in.sealed {
		L.RaiseError("%s is for the top level of the app only", what)
	}
}

// luaObject declares a class: object "Name" { … }.
func (in *Instance) luaObject(L *lua.LState) int {
	in.topLevel(L, "object")
	name, where := in.declared(L, "object")
	L.Push(L.NewFunction(func(L *lua.LState) int {
		body := in.body(L, where, "object", name)
		if in.loader != nil {
			in.loader.class(where, name, body)
		}
		if in.classes[name] == nil {
			in.classes[name] = body
		}
		L.Push(in.ClassRef(name))
		return 1
	}))
	return 1
}

// luaObjects refers to a class declared elsewhere: objects "Name".
func (in *Instance) luaObjects(L *lua.LState) int {
	name, where := in.declared(L, "objects")
	if in.loader != nil {
		in.loader.refers(where, name)
	}
	L.Push(in.ClassRef(name))
	return 1
}

// luaConnection declares a websocket's program.
func (in *Instance) luaConnection(L *lua.LState) int {
	in.topLevel(L, "connection")
	name, where := in.declared(L, "connection")
	L.Push(L.NewFunction(func(L *lua.LState) int {
		body := in.body(L, where, "connection", name)
		if in.loader != nil {
			in.loader.connection(where, name, body)
		}
		if in.connections[name] == nil {
			in.connections[name] = body
		}
		ud := L.NewUserData()
		ud.Value = &ConnectionRef{name}
		L.Push(ud)
		return 1
	}))
	return 1
}

// luaOn sets the handler of requests: on "fetch" (function(request) … end).
func (in *Instance) luaOn(L *lua.LState) int {
	in.topLevel(L, "on")
	name, where := in.declared(L, "on")
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if in.loader != nil {
			in.loader.on(where, name, L.Get(1), in.fetch != nil)
		}
		if _, ok := L.Get(1).(*lua.LFunction); ok && name == "fetch" && in.fetch == nil {
			in.fetch = L.Get(1)
		}
		return 0
	}))
	return 1
}

// declared gives the name that a declaration starts with, and where it stands.
func (in *Instance) declared(L *lua.LState, what string) (string, place) {
	where := in.here(L)
	name, ok := L.Get(1).(lua.LString)
	if !ok {
		L.RaiseError("%s needs a name: %s \"Name\"", what, what)
	}
	return string(name), where
}

func (in *Instance) body(L *lua.LState, where place, what, name string) *lua.LTable {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		L.RaiseError("%s %q needs a table: %s %q { … }", what, name, what, name)
	}
	return t
}

// place is a line of a file.
type place struct {
	file string
	line int
}

// here is where the running Lua function stands.
func (in *Instance) here(L *lua.LState) place {
	d, ok := L.GetStack(1)
	if !ok {
		return place{file: "main.lua"}
	}
	if _, err := L.GetInfo("Sl", d, lua.LNil); err != nil {
		return place{file: "main.lua"}
	}
	return place{d.Source, d.CurrentLine}
}

// luaRequire loads a module of the app once: require "lib.text" is lib/text.lua.
func (in *Instance) luaRequire(L *lua.LState) int {
	name := L.CheckString(1)
	file := path.Clean(strings.ReplaceAll(name, ".", "/") + ".lua")
	if v, ok := in.modules[file]; ok {
		L.Push(v)
		return 1
	}
	if _, ok := in.App.File(file); !ok {
		L.RaiseError("module '%s' not found: the app has no file %s", name, file)
	}
	for i, f := range in.loading {
		if f == file {
			L.RaiseError("module '%s' requires itself: %s", name, strings.Join(append(in.loading[i:], file), " -> "))
		}
	}
	if in.sealed {
		L.RaiseError("module '%s' must be required at the top level first", name)
	}
	chunk, err := in.App.chunk(file)
	if err != nil {
		if in.loader != nil {
			in.loader.syntax(err)
			L.Push(lua.LTrue)
			return 1
		}
		L.RaiseError("%s", err.Error())
	}
	in.loading = append(in.loading, file)
	results, err := in.VM.Run(in.VM.Meter(), chunk)
	in.loading = in.loading[:len(in.loading)-1]
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	v := lua.LValue(lua.LTrue)
	if len(results) > 0 && results[0] != lua.LNil {
		v = results[0]
	}
	in.modules[file] = v
	L.Push(v)
	return 1
}

// luaGetfile gives an app file's bytes, or nil.
func (in *Instance) luaGetfile(L *lua.LState) int {
	b, ok := in.App.File(strings.TrimPrefix(L.CheckString(1), "/"))
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LString(b))
	return 1
}
