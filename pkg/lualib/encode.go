package lualib

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// base64Encode is base64.encode(bytes): the standard alphabet, padded.
func (l *library) base64Encode(L *lua.LState) int {
	s := text(L, 1, "base64.encode")
	l.build(L, "base64.encode", base64.StdEncoding.EncodedLen(len(s)))
	return give(L, base64.StdEncoding.EncodeToString([]byte(s)))
}

// base64URLEncode is base64.url_encode(bytes): the alphabet for addresses and names, not padded.
func (l *library) base64URLEncode(L *lua.LState) int {
	s := text(L, 1, "base64.url_encode")
	l.build(L, "base64.url_encode", base64.RawURLEncoding.EncodedLen(len(s)))
	return give(L, base64.RawURLEncoding.EncodeToString([]byte(s)))
}

var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// base64Decode is base64.decode(text): of either alphabet, padded or not; line breaks are passed over. Bad input gives
// nil and a reason.
func (l *library) base64Decode(L *lua.LState) int {
	s := text(L, 1, "base64.decode")
	l.build(L, "base64.decode", len(s))
	body := strings.TrimRight(s, "=\r\n")
	padding := strings.Count(s[len(body):], "=")
	digits := len(body) - strings.Count(body, "\r") - strings.Count(body, "\n")
	if padding > 0 && (padding > 2 || (digits+padding)%4 != 0) {
		return refuse(L, "base64.decode: the padding is wrong: %d digits and %d =", digits, padding)
	}
	if digits%4 == 1 {
		return refuse(L, "base64.decode: the end is missing: %d digits", digits)
	}
	b, err := base64.RawStdEncoding.Strict().DecodeString(standardAlphabet.Replace(body))
	if err != nil {
		var at base64.CorruptInputError
		errors.As(err, &at) // it always is one
		return refuse(L, "base64.decode: no base64 at byte %d", int64(at)+1)
	}
	return give(L, string(b))
}

// hexEncode is hex.encode(bytes): in lower case.
func (l *library) hexEncode(L *lua.LState) int {
	s := text(L, 1, "hex.encode")
	l.build(L, "hex.encode", 2*len(s))
	return give(L, hex.EncodeToString([]byte(s)))
}

// hexDecode is hex.decode(text): of either case. Bad input gives nil and a reason.
func (l *library) hexDecode(L *lua.LState) int {
	s := text(L, 1, "hex.decode")
	l.build(L, "hex.decode", len(s)/2)
	b, err := hex.DecodeString(s)
	switch {
	case errors.Is(err, hex.ErrLength):
		return refuse(L, "hex.decode: an odd number of digits")
	case err != nil:
		return refuse(L, "hex.decode: no hex digits at byte %d", 2*len(b)+1)
	}
	return give(L, string(b))
}
