package value

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// scanner reads the tokens of JSON, as strictly as RFC 8259 has them.
type scanner struct {
	data []byte
	pos  int
}

// fail is a mistake in the JSON itself. It concerns the whole text, so no path
// leads to it.
func (s *scanner) fail(format string, args ...any) *Error {
	err := problem("not valid JSON: %s at byte %d", fmt.Sprintf(format, args...), s.pos+1)
	err.whole = true
	return err
}

// unexpected is the failure at the current byte.
func (s *scanner) unexpected(want string) *Error {
	if s.pos >= len(s.data) {
		return s.fail("it ends where %s should stand", want)
	}
	r, size := utf8.DecodeRune(s.data[s.pos:])
	if r == utf8.RuneError && size <= 1 {
		return s.fail("%#x instead of %s", s.data[s.pos], want)
	}
	return s.fail("%s instead of %s", strconv.QuoteRune(r), want)
}

// peek skips white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end makes sure that nothing but white space is left.
func (s *scanner) end() *Error {
	if s.peek(); s.pos < len(s.data) {
		return s.unexpected("the end")
	}
	return nil
}

// word reads true, false or null.
func (s *scanner) word(w string) *Error {
	for i := range len(w) {
		if s.pos >= len(s.data) || s.data[s.pos] != w[i] {
			return s.unexpected(w)
		}
		s.pos++
	}
	return nil
}

// number reads a number. Without '.' and exponent it is an integer and must be
// within ±2^53.
func (s *scanner) number() (i int64, f float64, isInt bool, err *Error) {
	start := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	first := s.pos
	if n := s.digits(); n == 0 {
		return 0, 0, false, s.unexpected("a digit")
	} else if n > 1 && s.data[first] == '0' {
		s.pos = first + 1
		return 0, 0, false, s.unexpected("'.', an exponent or the end of the number")
	}
	isInt = true
	if s.at('.') {
		isInt = false
		s.pos++
		if s.digits() == 0 {
			return 0, 0, false, s.unexpected("a digit")
		}
	}
	if s.at('e') || s.at('E') {
		isInt = false
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return 0, 0, false, s.unexpected("a digit")
		}
	}
	text := s.data[start:s.pos]
	if isInt {
		i, err = integer(text, s.data[first:s.pos])
		return i, 0, true, err
	}
	f, parseErr := strconv.ParseFloat(string(text), 64)
	if parseErr != nil {
		return 0, 0, false, problem("the number %s is too large; carry it as text", show(text))
	}
	return 0, f, false, nil
}

// integer converts digits, which stand in text with their sign.
func integer(text, digits []byte) (int64, *Error) {
	const most = 16 // digits of 2^53
	var n int64
	if len(digits) <= most {
		for _, c := range digits {
			n = n*10 + int64(c-'0')
		}
	}
	if len(digits) > most || n > MaxInteger {
		return 0, problem("the integer %s is outside ±2^53 and would be rounded; carry it as text", show(text))
	}
	if text[0] == '-' {
		n = -n
	}
	return n, nil
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }

// digits skips digits and counts them.
func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos - start
}

// show gives a number for an error, shortened.
func show(number []byte) string {
	if len(number) <= maxShown {
		return string(number)
	}
	return string(number[:maxShown]) + "…"
}
