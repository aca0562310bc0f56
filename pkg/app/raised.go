package app

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
	"weir/pkg/value"
	"weir/pkg/wire"
)

// nested is the failure that the last call to another object ended with, so that an error which comes from it keeps its
// way through that object.
type nested struct {
	value lua.LValue
	trace []wire.Frame
}

// Call runs a function of the app, which at names in traces (such as "Auction/lot-42:bid"). Its error is a *wire.Error, as
// it travels to whoever called: a raised string unchanged, a table as a value, the platform's errors by their code. Its
// trace has the lines of this VM's code, after those of the object that the error came from.
func (in *Instance) Call(m *luavm.Meter, at string, fn lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	results, err := in.VM.Call(m, fn, args...)
	last := in.nested
	in.nested = nested{}
	if err != nil {
		return nil, in.raised(err, last, at)
	}
	return results, nil
}

func (in *Instance) raised(err error, last nested, at string) *wire.Error {
	var e *luavm.Error
	if !errors.As(err, &e) {
		return wire.AsError(err)
	}
	var out wire.Error
	switch v, isText := e.Value.(lua.LString); {
	case e.Cause != nil:
		out = *wire.AsError(e.Cause)
	case isText:
		out = wire.Error{Message: string(v)}
	default:
		data, bad := value.Encode(e.Value, "error", value.MaxResults)
		if bad != nil {
			out = *wire.AsError(bad)
			break
		}
		out = wire.Error{Message: string(data), Raised: data}
	}
	if out.Trace == nil && last.value != nil && e.Cause == nil && comesFrom(e.Value, last.value) {
		out.Trace = last.trace
	}
	out.Trace = append(out.Trace[:len(out.Trace):len(out.Trace)], in.App.frames(e.Frames(), at)...)
	out.Trace = out.Trace[:min(len(out.Trace), wire.MaxTrace)]
	return &out
}

// comesFrom: raised again as it was, or with something added to its text.
func comesFrom(v, from lua.LValue) bool {
	text, ok := from.(lua.LString)
	if !ok {
		return v == from
	}
	s, ok := v.(lua.LString)
	return ok && strings.Contains(string(s), string(text))
}

// frames gives the lines of code in a traceback their place and their source. Without any the place stands alone.
func (a *App) frames(trace []luavm.Frame, at string) []wire.Frame {
	var out []wire.Frame
	for _, f := range trace {
		if source, ok := a.Line(f.File, f.Line); ok {
			out = append(out, wire.Frame{At: at, File: f.File, Line: f.Line, Source: source})
		}
	}
	if len(out) == 0 {
		out = append(out, wire.Frame{At: at})
	}
	return out
}

// Line gives a line of an app file without the space around it, at most 160 bytes of it.
func (a *App) Line(file string, n int) (string, bool) {
	data, ok := a.File(file)
	if !ok || n < 1 {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if n--; n == 0 {
			line = strings.TrimSpace(line)
			return strings.ToValidUTF8(line[:min(len(line), 160)], ""), true
		}
	}
	return "", false
}

// RaiseError raises in Lua what a call to another object gave: a raised string or table of the called app as it was, a
// platform error by its text.
func (in *Instance) RaiseError(L *lua.LState, err error) {
	e := wire.AsError(err)
	if e.Code != "" {
		luavm.Raise(L, e)
	}
	v := lua.LValue(lua.LString(e.Message))
	if e.Raised != nil {
		if decoded, bad := value.Decode(L, e.Raised, "error"); bad == nil {
			v = decoded
		}
	}
	in.nested = nested{v, e.Trace}
	L.Error(v, 0)
}
