package value

import (
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string that starts at the current byte. The result is part of
// the data unless there was something to unescape.
func (s *scanner) text() ([]byte, *Error) {
	s.pos++ // the opening quote
	start, ascii := s.pos, true
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			raw := s.data[start:s.pos]
			if !ascii && !utf8.Valid(raw) {
				return nil, s.notText(start)
			}
			s.pos++
			return raw, nil
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return nil, s.fail("the control character %#02x, which must be escaped,", c)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, s.unexpected(`'"'`)
}

// escaped reads on at the first backslash of the string that starts at start.
func (s *scanner) escaped(start int) ([]byte, *Error) {
	out := append(make([]byte, 0, s.pos-start+32), s.data[start:s.pos]...)
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			// Escapes yield whole runes, so only raw bytes can be invalid.
			if !utf8.Valid(s.data[start:s.pos]) {
				return nil, s.notText(start)
			}
			s.pos++
			return out, nil
		case c == '\\':
			var err *Error
			if out, err = s.escape(out); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.fail("the control character %#02x, which must be escaped,", c)
		default:
			out = append(out, c)
			s.pos++
		}
	}
	return nil, s.unexpected(`'"'`)
}

// escape reads one escape and appends what it stands for.
func (s *scanner) escape(out []byte) ([]byte, *Error) {
	s.pos++ // the backslash
	if s.pos >= len(s.data) {
		return nil, s.unexpected("an escape")
	}
	c := s.data[s.pos]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode(out)
	default:
		return nil, s.unexpected("an escape")
	}
	s.pos++
	return append(out, c), nil
}

// unicode reads uXXXX, and a second escape when the first is half a pair.
func (s *scanner) unicode(out []byte) ([]byte, *Error) {
	r, ok := s.hex(s.pos + 1)
	if !ok {
		return nil, s.fail(`\u without four hex digits`)
	}
	if utf16.IsSurrogate(r) {
		low, ok := rune(0), false
		if next := s.pos + 5; next+1 < len(s.data) && s.data[next] == '\\' && s.data[next+1] == 'u' {
			low, ok = s.hex(next + 2)
		}
		pair := utf16.DecodeRune(r, low)
		if !ok || pair == utf8.RuneError {
			return nil, s.fail(`\u%04x is half of a surrogate pair, which is no text,`, r)
		}
		r = pair
		s.pos += 6
	}
	s.pos += 5
	return utf8.AppendRune(out, r), nil
}

// hex reads four hex digits from position i.
func (s *scanner) hex(i int) (r rune, ok bool) {
	if i+4 > len(s.data) {
		return 0, false
	}
	for _, c := range s.data[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// notText finds the first byte from start on that is not UTF-8.
func (s *scanner) notText(start int) *Error {
	for s.pos = start; s.pos < len(s.data); {
		r, size := utf8.DecodeRune(s.data[s.pos:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		s.pos += size
	}
	return s.fail("text that is not valid UTF-8; encode bytes as hex or base64;")
}
