package objectid

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// The longest class, topic or method, and the longest name, in bytes.
const (
	maxWord = 64
	maxName = 128
)

// Validate says whether the id may name an object. Its errors start with
// "bad name: " and say what is wrong and what is allowed.
func (id ID) Validate() error {
	if !ValidClass(id.Class) {
		return bad("%s is not a class; a class is a letter followed by letters, digits and '_', at most %d bytes",
			quote(id.Class), maxWord)
	}
	const allowed = "a name is 1 to 128 bytes of UTF-8 without control characters"
	switch {
	case id.Name == "":
		return bad("an object of %s needs a name; %s", id.Class, allowed)
	case len(id.Name) > maxName:
		return bad("%s has %d bytes; %s", quote(id.Name), len(id.Name), allowed)
	case !utf8.ValidString(id.Name):
		return bad("%s is not valid UTF-8; %s", quote(id.Name), allowed)
	}
	for _, r := range id.Name {
		if unicode.IsControl(r) {
			return bad("%s contains the control character %U; %s", quote(id.Name), r, allowed)
		}
	}
	return nil
}

// ValidClass says whether s can be a class: [A-Za-z][A-Za-z0-9_]*, at most 64
// bytes.
func ValidClass(s string) bool { return ValidWord(s) && s[0] != '_' }

// ValidWord says whether s can be a topic or a method:
// [A-Za-z_][A-Za-z0-9_]*, at most 64 bytes.
func ValidWord(s string) bool {
	if s == "" || len(s) > maxWord {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return true
}

func bad(format string, args ...any) error { return fmt.Errorf("bad name: "+format, args...) }

// quote shows s in an error, shortened to 40 bytes and escaped.
func quote(s string) string {
	const most = 40
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
