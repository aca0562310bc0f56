package objectid

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The escape's alphabet is a–z, 0–9, '-' and the marker '_', all legal in
// subject tokens, stream and consumer names and file names, and all of one
// case. After the marker stand two lower-case hex digits, or 'x' and a hash, or
// the single 'e' of the empty text: no plain escape can produce the last two.
const (
	marker     = '_'
	hashMark   = "_x"
	emptyToken = "_e"
	maxToken   = 120
	hashLen    = len(hashMark) + 2*sha256.Size
)

const lowerHex = "0123456789abcdef"

// Escape turns any text into a token for subjects and file names. a–z, 0–9 and
// '-' stay, every other byte becomes '_' and two hex digits. The result has 1
// to 120 bytes: what would be longer is cut and ends in "_x" and its SHA-256.
// Distinct texts give distinct tokens.
func Escape(s string) string {
	if s == "" {
		return emptyToken
	}
	size := 0
	for i := range len(s) {
		size++
		if !plain(s[i]) {
			size += 2
		}
	}
	switch {
	case size == len(s) && size <= maxToken:
		return s
	case size <= maxToken:
		return string(appendEscaped(make([]byte, 0, size), s, size))
	}
	b := appendEscaped(make([]byte, 0, maxToken), s, maxToken-hashLen)
	sum := sha256.Sum256([]byte(s))
	b = append(b, hashMark...)
	return string(hex.AppendEncode(b, sum[:]))
}

// appendEscaped appends as many whole escapes of s as fit in most bytes.
func appendEscaped(b []byte, s string, most int) []byte {
	for i := range len(s) {
		c := s[i]
		switch {
		case plain(c) && len(b) < most:
			b = append(b, c)
		case !plain(c) && len(b)+3 <= most:
			b = append(b, marker, lowerHex[c>>4], lowerHex[c&15])
		default:
			return b
		}
	}
	return b
}

// Unescape gives the text a token stands for. It reports false for hashed
// tokens, whose text is gone, and for anything [Escape] does not produce.
func Unescape(token string) (string, bool) {
	if token == emptyToken {
		return "", true
	}
	if token == "" || len(token) > maxToken {
		return "", false
	}
	if strings.IndexByte(token, marker) < 0 {
		return token, allPlain(token)
	}
	b := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if plain(c) {
			b = append(b, c)
			continue
		}
		if c != marker || i+2 >= len(token) {
			return "", false
		}
		hi, lo := strings.IndexByte(lowerHex, token[i+1]), strings.IndexByte(lowerHex, token[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		c = byte(hi<<4 | lo)
		if plain(c) { // a second spelling of a byte that stays as it is
			return "", false
		}
		b = append(b, c)
		i += 2
	}
	return string(b), true
}

// plain says whether c stays as it is.
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
}

func allPlain(s string) bool {
	for i := range len(s) {
		if !plain(s[i]) {
			return false
		}
	}
	return true
}
