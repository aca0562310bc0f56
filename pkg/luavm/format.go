package luavm

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// strFormat is string.format with the conversions of Lua 5.1. Width and precision have at most two digits, as there.
func (vm *VM) strFormat(L *lua.LState) int {
	f := argString(L, 1)
	vm.scan(len(f))
	var b strings.Builder
	arg := 1
	add := func(part string) {
		if b.Len()+len(part) > vm.opts.MaxString {
			vm.room(L, -1)
		}
		b.WriteString(part)
	}
	for i := 0; i < len(f); {
		next := strings.IndexByte(f[i:], '%')
		if next < 0 {
			next = len(f) - i
		}
		add(f[i : i+next])
		if i += next; i == len(f) {
			break
		}
		if i++; i < len(f) && f[i] == '%' {
			add("%")
			i++
			continue
		}
		spec := parseSpec(L, f, &i)
		arg++
		add(vm.formatOne(L, spec, arg))
	}
	vm.room(L, b.Len())
	return vm.pushString(L, b.String())
}

type formatSpec struct {
	flags            string
	width, precision int // -1: not given
	verb             byte
}

func parseSpec(L *lua.LState, f string, i *int) formatSpec {
	s := formatSpec{width: -1, precision: -1}
	from := *i
	for *i < len(f) && strings.IndexByte("-+ #0", f[*i]) >= 0 {
		*i++
	}
	if s.flags = f[from:*i]; len(s.flags) > 5 {
		fail(L, "invalid format (repeated flags)")
	}
	digits := func() int {
		n, from := 0, *i
		for *i < len(f) && f[*i] >= '0' && f[*i] <= '9' {
			if *i-from == 2 {
				fail(L, "invalid format (width or precision too long)")
			}
			n = n*10 + int(f[*i]-'0')
			*i++
		}
		return n
	}
	if *i < len(f) && f[*i] >= '0' && f[*i] <= '9' {
		s.width = digits()
	}
	if *i < len(f) && f[*i] == '.' {
		*i++
		s.precision = digits()
	}
	if *i < len(f) {
		s.verb = f[*i]
		*i++
	}
	return s
}

func (vm *VM) formatOne(L *lua.LState, s formatSpec, arg int) string {
	switch s.verb {
	case 'd', 'i':
		return formatNumber(s, 'd', toInt64(argNumber(L, arg)))
	case 'u':
		return formatNumber(s, 'd', uint64(toInt64(argNumber(L, arg))))
	case 'o', 'x', 'X':
		return formatNumber(s, s.verb, uint64(toInt64(argNumber(L, arg))))
	case 'c':
		return pad(s, string([]byte{byte(argInt(L, arg))}))
	case 'e', 'E', 'f', 'g', 'G':
		n := argNumber(L, arg)
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return pad(s, numberText(lua.LNumber(n)))
		}
		if s.precision < 0 {
			s.precision = 6
		}
		return formatNumber(s, s.verb, n)
	case 'q':
		return vm.quote(L, argString(L, arg))
	case 's':
		text := vm.toString(L, argAny(L, arg))
		if s.precision >= 0 && s.precision < len(text) {
			text = text[:s.precision]
		}
		return pad(s, text)
	case 0:
		fail(L, "invalid format (ends with '%')")
	}
	fail(L, fmt.Sprintf("invalid option '%%%c' to 'format'", s.verb))
	return ""
}

// toInt64 converts as a C cast does on amd64: out of range becomes the smallest integer.
func toInt64(f float64) int64 {
	if !(f >= -1<<63 && f < 1<<63) {
		if f >= 1<<63 && f < 1<<64 {
			return int64(uint64(f))
		}
		return math.MinInt64
	}
	return int64(f)
}

func formatNumber(s formatSpec, verb byte, n any) string {
	f := "%" + s.flags
	if s.width >= 0 {
		f += fmt.Sprint(s.width)
	}
	if s.precision >= 0 {
		f += fmt.Sprintf(".%d", s.precision)
	}
	return fmt.Sprintf(f+string(verb), n)
}

// pad brings bytes to the width.
func pad(s formatSpec, text string) string {
	if len(text) >= s.width {
		return text
	}
	fill := strings.Repeat(" ", s.width-len(text))
	if strings.Contains(s.flags, "-") {
		return text + fill
	}
	return fill + text
}

// quote writes a string so that Lua reads it back.
func (vm *VM) quote(L *lua.LState, s string) string {
	vm.room(L, len(s)+2)
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
