package value

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// appendNumber appends a finite number: an integral one within ±2^53 as an
// integer, any other as the shortest text that reads back the same, always
// with a fraction or an exponent so that it never looks like an integer.
func appendNumber(b []byte, x float64) []byte {
	if integral(x) {
		return strconv.AppendInt(b, int64(x), 10)
	}
	abs := math.Abs(x)
	if abs >= 1e-6 && abs < MaxInteger {
		return strconv.AppendFloat(b, x, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, x, 'e', -1, 64)
	if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' { // e-07 to e-7
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

// appendText appends s as a JSON string and reports whether s is valid UTF-8.
// Only quotes, backslashes and control characters below U+0020 are escaped.
func appendText(b []byte, s string) ([]byte, bool) {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start, ascii := 0, true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"'), ascii || utf8.ValidString(s)
}
