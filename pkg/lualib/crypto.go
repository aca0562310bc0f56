package lualib

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	lua "github.com/yuin/gopher-lua"
)

// maxRandom bounds the bytes that crypto.random gives at once.
const maxRandom = 1024

// sha256 is crypto.sha256(s), in hex.
func (l *library) sha256(L *lua.LState) int {
	s := secretText(L, 1, "crypto.sha256")
	l.read(L, len(s))
	sum := sha256.Sum256([]byte(s))
	return give(L, hex.EncodeToString(sum[:]))
}

// hmac is crypto.hmac(key, s): HMAC with SHA-256, in hex.
func (l *library) hmac(L *lua.LState) int {
	key := secretText(L, 1, "crypto.hmac (the key, its first argument)")
	s := secretText(L, 2, "crypto.hmac (what to sign, its second argument)")
	if key == "" {
		L.RaiseError("crypto.hmac: the key is empty: anybody could make this sum; take a secret")
	}
	l.read(L, len(key)+len(s))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(s))
	return give(L, hex.EncodeToString(mac.Sum(nil)))
}

// random is crypto.random(n): n unpredictable bytes, in hex.
func (l *library) random(L *lua.LState) int {
	n, ok := L.Get(1).(lua.LNumber)
	if !ok || n != lua.LNumber(int(n)) || n < 1 || n > maxRandom {
		L.RaiseError("crypto.random takes the number of bytes, an integer from 1 to %d", maxRandom)
	}
	b := make([]byte, int(n))
	_, _ = rand.Read(b) // never fails: without randomness the process ends
	l.build(L, "crypto.random", 2*len(b))
	return give(L, hex.EncodeToString(b))
}

// equal is crypto.equal(a, b): whether they are the same, in a time that says nothing about where they differ.
func (l *library) equal(L *lua.LState) int {
	a := secretText(L, 1, "crypto.equal")
	b := secretText(L, 2, "crypto.equal")
	l.read(L, len(a)+len(b))
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b)) // also hides the lengths
	L.Push(lua.LBool(subtle.ConstantTimeCompare(x[:], y[:]) == 1))
	return 1
}
