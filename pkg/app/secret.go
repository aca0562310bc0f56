package app

import (
	lua "github.com/yuin/gopher-lua"
)

// Secret is an opaque value: jwt and crypto take it, tostring hides it, reveal() gives its text.
type Secret struct {
	Name string
	text string
}

// LuaKind names it in errors of the converter.
func (s *Secret) LuaKind() string { return "secret" }

// Reveal gives the secret's text.
func (s *Secret) Reveal() string { return s.text }

// String hides it, also from logs that print values.
func (s *Secret) String() string { return "secret " + s.Name }

// GoString hides it from %#v.
func (s *Secret) GoString() string { return s.String() }

// luaSecret gives a secret by its name: secret "session-key".
func (in *Instance) luaSecret(L *lua.LState) int {
	in.topLevel(L, "secret")
	name, where := in.declared(L, "secret")
	s := &Secret{Name: name}
	ok := false
	if in.App.options.Secrets != nil {
		s.text, ok = in.App.options.Secrets(name)
	}
	if ok = ok && s.text != ""; !ok && in.loader == nil && !in.App.options.LaxSecrets {
		L.RaiseError("the secret %q is missing now", name) // it was there when the app was loaded
	}
	if !ok && in.loader != nil {
		m := Mistake{where.file, where.line, "the secret \"" + name + "\" is missing or empty: set " + SecretVariable(name) + ", or put a file " + name + " into the secrets folder"}
		if in.App.options.LaxSecrets {
			in.loader.warnings = append(in.loader.warnings, m)
		} else {
			in.loader.mistakes = append(in.loader.mistakes, m)
		}
	}
	ud := L.NewUserData()
	ud.Value = s
	mt := L.NewTable()
	mt.RawSetString("__metatable", lua.LString("locked"))
	mt.RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(s.String()))
		return 1
	}))
	methods := L.NewTable()
	methods.RawSetString("reveal", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(s.text))
		return 1
	}))
	mt.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		L.Push(methods.RawGet(L.Get(2)))
		return 1
	}))
	ud.Metatable = mt
	L.Push(ud)
	return 1
}

// SecretVariable names the environment variable that holds a secret.
func SecretVariable(name string) string {
	b := []byte("WEIR_SECRET_" + name)
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			b[i] = c - 'a' + 'A'
		case c == '-', c == '.', c == ' ':
			b[i] = '_'
		}
	}
	return string(b)
}
