package luavm

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// numberText is a number as tostring gives it: integers in full, the rest with 14 digits as Lua does.
func numberText(n lua.LNumber) string {
	f := float64(n)
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1<<63:
		return strconv.FormatInt(int64(f), 10)
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', 14, 64)
}

const space = " \t\n\v\f\r"

// parseNumber reads a decimal number or a hexadecimal integer, with space around it.
func parseNumber(s string) (float64, bool) {
	s = strings.Trim(s, space)
	if len(s) > 400 {
		return 0, false
	}
	body := strings.TrimLeft(s, "+-")
	if body == "" || len(s)-len(body) > 1 {
		return 0, false
	}
	if len(body) > 2 && body[0] == '0' && (body[1] == 'x' || body[1] == 'X') {
		return parseDigits(s[:len(s)-len(body)]+body[2:], 16)
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// parseDigits reads an integer in a base from 2 to 36.
func parseDigits(s string, base int) (float64, bool) {
	s = strings.Trim(s, space)
	neg := strings.HasPrefix(s, "-")
	if neg || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	f := 0.0
	for i := range len(s) {
		d := 99
		switch c := s[i] | 0x20; {
		case s[i] >= '0' && s[i] <= '9':
			d = int(s[i] - '0')
		case c >= 'a' && c <= 'z':
			d = int(c-'a') + 10
		}
		if d >= base {
			return 0, false
		}
		f = f*float64(base) + float64(d)
	}
	if neg {
		f = -f
	}
	return f, true
}
