package lualib

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
	"weir/pkg/value"
)

// maxJSON bounds the text that json takes and gives.
const maxJSON = 10 << 20

// Open gives the function that installs the library into an app's VM. Log lines go to log.
func Open(log *slog.Logger) func(*app.Instance) error {
	return func(in *app.Instance) error {
		L := in.VM.L
		for name, fns := range map[string]map[string]lua.LGFunction{
			"json": {"parse": jsonParse, "stringify": jsonStringify, "array": jsonArray},
			"uuid": {"v4": uuidV4, "v7": uuidV7},
			"log":  {"debug": logger(log, slog.LevelDebug), "info": logger(log, slog.LevelInfo), "warn": logger(log, slog.LevelWarn), "error": logger(log, slog.LevelError)},
			"sql":  {"blob": sqlBlob},
		} {
			t := L.NewTable()
			for n, fn := range fns {
				t.RawSetString(n, L.NewFunction(fn))
			}
			if name == "json" {
				t.RawSetString("null", luavm.Null)
			}
			in.VM.SetGlobal(name, t)
		}
		return nil
	}
}

// text gives a string argument or raises.
func text(L *lua.LState, n int, what string) string {
	s, ok := L.Get(n).(lua.LString)
	if !ok {
		L.RaiseError("%s takes a string, not a %s", what, L.Get(n).Type())
	}
	return string(s)
}

func jsonParse(L *lua.LState) int {
	s := text(L, 1, "json.parse")
	if len(s) > maxJSON {
		L.RaiseError("json.parse: %d bytes are more than %d MiB", len(s), maxJSON>>20)
	}
	v, err := value.Decode(L, []byte(s), "json")
	if err != nil {
		luavm.Raise(L, err)
	}
	L.Push(v)
	return 1
}

func jsonStringify(L *lua.LState) int {
	data, err := value.Encode(L.Get(1), "value", maxJSON)
	if err != nil {
		luavm.Raise(L, err)
	}
	L.Push(lua.LString(data))
	return 1
}

func jsonArray(L *lua.LState) int {
	L.Push(luavm.NewArray(L))
	return 1
}

func uuidV4(L *lua.LState) int {
	L.Push(lua.LString(uuid.NewString()))
	return 1
}

func uuidV7(L *lua.LState) int {
	id, err := uuid.NewV7()
	if err != nil {
		L.RaiseError("uuid.v7: %s", err.Error())
	}
	L.Push(lua.LString(id.String()))
	return 1
}

// logger is log.info(text, fields?): fields is a table of what belongs to the line.
func logger(log *slog.Logger, level slog.Level) lua.LGFunction {
	return func(L *lua.LState) int {
		if !log.Enabled(context.Background(), level) {
			return 0
		}
		attrs := []slog.Attr{slog.String("from", "app")}
		if t, ok := L.Get(2).(*lua.LTable); ok {
			t.ForEach(func(k, v lua.LValue) {
				if v.Type() == lua.LTTable {
					if data, err := value.Encode(v, "field", 16<<10); err == nil {
						attrs = append(attrs, slog.String(k.String(), string(data)))
						return
					}
				}
				attrs = append(attrs, slog.String(k.String(), fmt.Sprint(v)))
			})
		}
		log.LogAttrs(context.Background(), level, L.ToStringMeta(L.Get(1)).String(), attrs...)
		return 0
	}
}

// sqlBlob is sql.blob(bytes): binds as BLOB.
func sqlBlob(L *lua.LState) int {
	L.Push(value.NewBlob(L, text(L, 1, "sql.blob")))
	return 1
}
