package lualib

import (
	"context"
	"fmt"
	"log/slog"
	"math"

	lua "github.com/yuin/gopher-lua"

	"weir/pkg/value"
)

// What one line of the log may hold; the rest is cut off, and said to be.
const (
	maxLogText   = 16 << 10
	maxLogFields = 32
)

// logWork is what one line costs in instructions: it is written out by one system call.
const logWork = 100

// logger is log.info(text, fields?) of a level: fields is a table of what belongs to the line. Both show a secret as its
// name.
func (l *library) logger(level slog.Level) lua.LGFunction {
	return func(L *lua.LState) int {
		if !l.log.Enabled(context.Background(), level) {
			return 0
		}
		l.spend(L, logWork)
		msg := l.cut(L, L.ToStringMeta(L.Get(1)).String())
		attrs := []slog.Attr{slog.String("from", "app")}
		if t, ok := L.Get(2).(*lua.LTable); ok {
			n := 0
			t.ForEach(func(k, v lua.LValue) {
				if n++; n <= maxLogFields {
					attrs = append(attrs, l.field(L, l.cut(L, k.String()), v))
				}
			})
			if n > maxLogFields {
				attrs = append(attrs, slog.Int("fields_left_off", n-maxLogFields))
			}
		}
		l.log.LogAttrs(context.Background(), level, msg, attrs...)
		return 0
	}
}

// field is one field of a line.
func (l *library) field(L *lua.LState, key string, v lua.LValue) slog.Attr {
	switch v := v.(type) {
	case lua.LBool:
		return slog.Bool(key, bool(v))
	case lua.LNumber:
		x := float64(v)
		if x == math.Trunc(x) && math.Abs(x) <= value.MaxInteger {
			return slog.Int64(key, int64(x))
		}
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return slog.Float64(key, x)
		}
	case *lua.LUserData:
		return slog.String(key, l.cut(L, L.ToStringMeta(v).String())) // handles and secrets know their name
	case *lua.LTable:
		data, err := value.Encode(v, "field", maxLogText)
		if err != nil {
			return slog.String(key, err.Error())
		}
		return slog.String(key, l.cut(L, string(data)))
	}
	return slog.String(key, l.cut(L, v.String()))
}

// cut bounds text of a line and charges it.
func (l *library) cut(L *lua.LState, s string) string {
	if len(s) > maxLogText {
		s = fmt.Sprintf("%s… (%d bytes in all)", s[:maxLogText], len(s))
	}
	l.read(L, len(s))
	return s
}
