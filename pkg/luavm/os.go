package luavm

import (
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	maxDateFormat = 512
	maxUnix       = 253402300799 // end of the year 9999
)

var startedAt = time.Now()

// openOS sets os.time, os.date and os.clock; nothing else of os exists (BOX-1).
func (vm *VM) openOS() {
	vm.module("os", map[string]lua.LGFunction{
		"clock": func(L *lua.LState) int {
			L.Push(lua.LNumber(time.Since(startedAt).Seconds()))
			return 1
		},
		"date": vm.osDate,
		"time": vm.osTime,
	})
}

func (vm *VM) osTime(L *lua.LState) int {
	if L.Get(1) == lua.LNil {
		L.Push(lua.LNumber(time.Now().Unix()))
		return 1
	}
	t := vm.readable(L, 1)
	field := func(name string, d int) int {
		v := t.RawGetString(name)
		if n, ok := v.(lua.LNumber); ok {
			return min(max(toInt(float64(n)), -1<<31), 1<<31)
		}
		if s, ok := v.(lua.LString); ok {
			if f, ok := parseNumber(string(s)); ok {
				return min(max(toInt(f), -1<<31), 1<<31)
			}
		}
		if d < 0 {
			fail(L, "field '"+name+"' missing in date table")
		}
		return d
	}
	at := time.Date(field("year", -1), time.Month(field("month", -1)), field("day", -1),
		field("hour", 12), field("min", 0), field("sec", 0), 0, time.Local)
	L.Push(lua.LNumber(at.Unix()))
	return 1
}

func (vm *VM) osDate(L *lua.LState) int {
	format := "%c"
	if L.Get(1) != lua.LNil {
		format = argString(L, 1)
	}
	if len(format) > maxDateFormat {
		badArg(L, 1, fmt.Sprintf("format over %d bytes", maxDateFormat))
	}
	at := time.Now()
	if L.Get(2) != lua.LNil {
		sec := argInt(L, 2)
		if sec > maxUnix || sec < -maxUnix {
			badArg(L, 2, "time out of range")
		}
		at = time.Unix(int64(sec), 0)
	}
	if utc := strings.TrimPrefix(format, "!"); utc != format {
		format, at = utc, at.UTC()
	}
	if strings.HasPrefix(format, "*t") {
		t := L.CreateTable(0, 9)
		for name, n := range map[string]int{
			"year": at.Year(), "month": int(at.Month()), "day": at.Day(), "hour": at.Hour(), "min": at.Minute(),
			"sec": at.Second(), "wday": int(at.Weekday()) + 1, "yday": at.YearDay(),
		} {
			t.RawSetString(name, lua.LNumber(n))
		}
		t.RawSetString("isdst", lua.LBool(at.IsDST()))
		L.Push(t)
		return 1
	}
	return vm.pushString(L, strftime(at, format))
}

// layouts are the directives that Go's time formats; the rest is computed.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'H': "15",
	'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006",
	'Z': "MST", 'z': "-0700", 'D': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'e': "_2",
}

func strftime(at time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; c {
		case '%':
			b.WriteByte('%')
		case 'j':
			fmt.Fprintf(&b, "%03d", at.YearDay())
		case 'w':
			fmt.Fprintf(&b, "%d", at.Weekday())
		case 'U':
			fmt.Fprintf(&b, "%02d", (at.YearDay()+6-int(at.Weekday()))/7)
		case 'W':
			fmt.Fprintf(&b, "%02d", (at.YearDay()+6-(int(at.Weekday())+6)%7)/7)
		default:
			if layout, ok := layouts[c]; ok {
				b.WriteString(at.Format(layout))
			} else {
				b.WriteByte('%')
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}
