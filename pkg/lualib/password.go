package lualib

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/crypto/argon2"

	"weir/pkg/luavm"
)

const (
	// maxPassword bounds a password in bytes; nobody types a longer one.
	maxPassword = 1024
	// maxPHC bounds the text of a hash: one of the largest salt and tag has 213 bytes.
	maxPHC = 256
	// saltBytes is the salt of a new hash.
	saltBytes = 16
	// blockWork is what one block of 1 KiB costs in one pass, in instructions: close to a microsecond.
	blockWork = 25
)

// argon is the cost of a hash, and its tag's length in bytes.
type argon struct {
	memory, time uint32 // KiB, passes
	lanes        uint8
	tag          uint32
}

// newHash is the cost of new hashes: OWASP's recommendation for argon2id.
var newHash = argon{memory: 19 << 10, time: 2, lanes: 1, tag: 32}

// Bounds of a hash that is verified. They take in what other libraries make by default (64 MiB, 4 passes, 4 lanes).
var (
	leastHash = argon{memory: 8, time: 1, lanes: 1, tag: 16}
	mostHash  = argon{memory: 64 << 10, time: 10, lanes: 8, tag: 64}
)

// hashing holds a token for each computation that runs: each takes up to 64 MiB and a processor.
var hashing = make(chan struct{}, 2)

// passwordHash is crypto.password_hash(password): text to keep, with the cost and a salt of its own.
func (l *library) passwordHash(L *lua.LState) int {
	password := secretText(L, 1, "crypto.password_hash")
	switch {
	case password == "":
		L.RaiseError("crypto.password_hash: the password is empty: refuse it before")
	case len(password) > maxPassword:
		L.RaiseError("crypto.password_hash: the password is longer than %d bytes: refuse it before", maxPassword)
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails: without randomness the process ends
	tag := l.argon2id(L, password, salt, newHash)
	b64 := base64.RawStdEncoding
	return give(L, fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		newHash.memory, newHash.time, newHash.lanes, b64.EncodeToString(salt), b64.EncodeToString(tag)))
}

// passwordVerify is crypto.password_verify(password, hash): whether the hash is that password's; false and a reason if
// the hash is none.
func (l *library) passwordVerify(L *lua.LState) int {
	password := secretText(L, 1, "crypto.password_verify (the password, its first argument)")
	hash := secretText(L, 2, "crypto.password_verify (the hash, its second argument)")
	cost, salt, want, err := parsePHC(hash)
	if err != nil {
		L.Push(lua.LFalse)
		L.Push(lua.LString("crypto.password_verify: " + err.Error()))
		return 2
	}
	if len(password) > maxPassword { // password_hash has made no hash of it
		L.Push(lua.LFalse)
		return 1
	}
	got := l.argon2id(L, password, salt, cost)
	L.Push(lua.LBool(subtle.ConstantTimeCompare(got, want) == 1))
	return 1
}

// argon2id computes a tag when it is its turn.
func (l *library) argon2id(L *lua.LState, password string, salt []byte, c argon) []byte {
	if m := l.vm.Meter(); m != nil {
		l.grow(int(c.memory) << 10)
		l.spend(L, int(c.memory*c.time*blockWork))
		select {
		case hashing <- struct{}{}:
		case <-m.Done():
			luavm.Raise(L, m.Err())
		}
	} else {
		hashing <- struct{}{}
	}
	defer func() { <-hashing }()
	return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.lanes, c.tag)
}

var errPHC = errors.New("the hash is none of crypto.password_hash: it has the form $argon2id$v=19$m=…,t=…,p=…$salt$hash")

// parsePHC reads a hash in the PHC string format and bounds its cost. Errors do not show the hash.
func parsePHC(s string) (c argon, salt, tag []byte, err error) {
	if len(s) > maxPHC {
		return c, nil, nil, errPHC
	}
	part := strings.Split(s, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != "v="+strconv.Itoa(argon2.Version) {
		return c, nil, nil, errPHC
	}
	var cost [3]uint64
	params := strings.Split(part[3], ",")
	if len(params) != len(cost) {
		return c, nil, nil, errPHC
	}
	for i, prefix := range []string{"m=", "t=", "p="} {
		number, ok := strings.CutPrefix(params[i], prefix)
		if cost[i], err = strconv.ParseUint(number, 10, 32); !ok || err != nil {
			return c, nil, nil, errPHC
		}
	}
	b64 := base64.RawStdEncoding.Strict()
	salt, saltErr := b64.DecodeString(part[4])
	tag, tagErr := b64.DecodeString(part[5])
	if saltErr != nil || tagErr != nil {
		return c, nil, nil, errPHC
	}
	for _, b := range []struct {
		what             string
		got, least, most uint64
	}{
		{"memory (m, in KiB)", cost[0], uint64(leastHash.memory), uint64(mostHash.memory)},
		{"passes (t)", cost[1], uint64(leastHash.time), uint64(mostHash.time)},
		{"lanes (p)", cost[2], uint64(leastHash.lanes), uint64(mostHash.lanes)},
		{"salt's bytes", uint64(len(salt)), 8, 64},
		{"bytes", uint64(len(tag)), uint64(leastHash.tag), uint64(mostHash.tag)},
	} {
		if b.got < b.least || b.got > b.most {
			return c, nil, nil, fmt.Errorf("the hash's %s must be %d to %d, not %d", b.what, b.least, b.most, b.got)
		}
	}
	return argon{memory: uint32(cost[0]), time: uint32(cost[1]), lanes: uint8(cost[2]), tag: uint32(len(tag))}, salt, tag, nil
}
