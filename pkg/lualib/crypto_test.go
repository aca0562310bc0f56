package lualib

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"weir/pkg/luavm"
)

// spec: HTTP-5
func TestCrypto(t *testing.T) {
	w := open(t, "", nil)
	mac := hmac.New(sha256.New, []byte(hidden))
	mac.Write([]byte("data"))
	sum := sha256.Sum256([]byte(hidden))
	w.check(t, []luaCase{
		// FIPS 180-2, appendix B; RFC 4231, case 2
		{`crypto.sha256("abc")`, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{`crypto.sha256("")`, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{`crypto.hmac("Jefe", "what do ya want for nothing?")`, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{`crypto.hmac(key, "data")`, hex.EncodeToString(mac.Sum(nil))},
		{`crypto.hmac("k", key) == crypto.hmac("k", key:reveal())`, "true"},
		{`crypto.sha256(key)`, hex.EncodeToString(sum[:])},
		{`crypto.sha256()`, "error: test.lua:1: crypto.sha256 takes a string or a secret, not nil"},
		{`crypto.hmac({}, "x")`, "error: test.lua:1: crypto.hmac (the key, its first argument) takes a string or a secret, not a table"},
		{`crypto.hmac("x")`, "error: test.lua:1: crypto.hmac (what to sign, its second argument) takes a string or a secret, not nil"},
		{`crypto.hmac("", "x")`, "error: test.lua:1: crypto.hmac: the key is empty: anybody could make this sum; take a secret"},

		{`crypto.random(16):match("^%x+$") ~= nil`, "true"},
		{`#crypto.random(1)`, "2"}, {`#crypto.random(1024)`, "2048"},
		{`crypto.random(16) == crypto.random(16)`, "false"},
		{`crypto.random(0)`, "error: test.lua:1: crypto.random takes the number of bytes, an integer from 1 to 1024"},
		{`crypto.random(1025)`, "error: test.lua:1: crypto.random takes …"},
		{`crypto.random(1.5)`, "error: test.lua:1: crypto.random takes …"},
		{`crypto.random(0/0)`, "error: test.lua:1: crypto.random takes …"},
		{`crypto.random(1e300)`, "error: test.lua:1: crypto.random takes …"},
		{`crypto.random("8")`, "error: test.lua:1: crypto.random takes …"},
		{`crypto.random()`, "error: test.lua:1: crypto.random takes …"},

		{`crypto.equal("abc", "abc")`, "true"}, {`crypto.equal("abc", "abd")`, "false"}, {`crypto.equal("abc", "abcd")`, "false"}, {`crypto.equal("", "")`, "true"},
		{`crypto.equal(key, key:reveal())`, "true"}, {`crypto.equal("x", key)`, "false"},
		{`crypto.equal("x", nil)`, "error: test.lua:1: crypto.equal takes a string or a secret, not nil"},
	})
}

// spec: HTTP-5
func TestPassword(t *testing.T) {
	w := open(t, "", nil)
	hash := w.run(t, `crypto.password_hash("correct horse")`)
	if !regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(hash) {
		t.Fatalf("hash %q", hash)
	}
	w.set("hash", hash)
	w.check(t, []luaCase{
		{`crypto.password_verify("correct horse", hash)`, "true"},
		{`crypto.password_verify("correct horsf", hash)`, "false"},
		{`crypto.password_verify("", hash)`, "false"},
		{`crypto.password_verify(("x"):rep(1025), hash)`, "false"},
		{`crypto.password_hash("correct horse") == hash`, "false"}, // another salt
		{`crypto.password_verify(key, crypto.password_hash(key))`, "true"},
		{`crypto.password_verify(key:reveal(), crypto.password_hash(key))`, "true"},
		{`crypto.password_hash("")`, "error: test.lua:1: crypto.password_hash: the password is empty: refuse it before"},
		{`crypto.password_hash(("x"):rep(1025))`, "error: test.lua:1: crypto.password_hash: the password is longer than 1024 bytes: refuse it before"},
		{`crypto.password_hash(1)`, "error: test.lua:1: crypto.password_hash takes a string or a secret, not a number"},
		{`crypto.password_verify(nil, hash)`, "error: test.lua:1: crypto.password_verify (the password, its first argument) takes a string or a secret, not nil"},
		{`crypto.password_verify("x", nil)`, "error: test.lua:1: crypto.password_verify (the hash, its second argument) takes a string or a secret, not nil"},

		// The vectors of the reference implementation (phc-winner-argon2, src/test.c).
		{`crypto.password_verify("password", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")`, "true"},
		{`crypto.password_verify("password", "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc")`, "true"},
		{`crypto.password_verify("password", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")`, "true"},
		{`crypto.password_verify("passwore", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4")`, "false"},
	})
}

// spec: HTTP-5
func TestPasswordHashThatIsNone(t *testing.T) {
	w := open(t, "", nil)
	const none = "false|crypto.password_verify: the hash is none of crypto.password_hash: it has the form $argon2id$v=19$m=…,t=…,p=…$salt$hash"
	const salt, tag = "c29tZXNhbHQ", "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	for hash, want := range map[string]string{
		"":                              none,
		"plaintext":                     none,
		"$2b$12$abcdefghijklmnopqrstuv": none,
		"$argon2i$v=19$m=256,t=2,p=1$" + salt + "$" + tag:                       none,
		"$argon2id$v=16$m=256,t=2,p=1$" + salt + "$" + tag:                      none,
		"$argon2id$m=256,t=2,p=1$" + salt + "$" + tag:                           none,
		"$argon2id$v=19$t=2,m=256,p=1$" + salt + "$" + tag:                      none,
		"$argon2id$v=19$m=256,t=2$" + salt + "$" + tag:                          none,
		"$argon2id$v=19$m=256,t=2,p=1,x=1$" + salt + "$" + tag:                  none,
		"$argon2id$v=19$m=-1,t=2,p=1$" + salt + "$" + tag:                       none,
		"$argon2id$v=19$m=99999999999999999999,t=2,p=1$" + salt + "$" + tag:     none,
		"$argon2id$v=19$m=256,t=2,p=1$***$" + tag:                               none,
		"$argon2id$v=19$m=256,t=2,p=1$" + salt + "$" + tag + "=":                none,
		"$argon2id$v=19$m=256,t=2,p=1$" + salt + "$" + tag + "$":                none,
		"$argon2id$v=19$m=256,t=2,p=1$" + salt + "$" + strings.Repeat("A", 300): none,
		"$argon2id$v=19$m=4194304,t=1,p=1$" + salt + "$" + tag:                  "false|crypto.password_verify: the hash's memory (m, in KiB) must be 8 to 65536, not 4194304",
		"$argon2id$v=19$m=0,t=1,p=1$" + salt + "$" + tag:                        "false|crypto.password_verify: the hash's memory (m, in KiB) must be 8 to 65536, not 0",
		"$argon2id$v=19$m=256,t=0,p=1$" + salt + "$" + tag:                      "false|crypto.password_verify: the hash's passes (t) must be 1 to 10, not 0",
		"$argon2id$v=19$m=256,t=4000000000,p=1$" + salt + "$" + tag:             "false|crypto.password_verify: the hash's passes (t) must be 1 to 10, not 4000000000",
		"$argon2id$v=19$m=256,t=1,p=0$" + salt + "$" + tag:                      "false|crypto.password_verify: the hash's lanes (p) must be 1 to 8, not 0",
		"$argon2id$v=19$m=256,t=1,p=257$" + salt + "$" + tag:                    "false|crypto.password_verify: the hash's lanes (p) must be 1 to 8, not 257",
		"$argon2id$v=19$m=256,t=1,p=1$c2FsdA$" + tag:                            "false|crypto.password_verify: the hash's salt's bytes must be 8 to 64, not 4",
		"$argon2id$v=19$m=256,t=1,p=1$" + salt + "$":                            "false|crypto.password_verify: the hash's bytes must be 16 to 64, not 0",
	} {
		w.set("hash", hash)
		if got := w.run(t, `crypto.password_verify("password", hash)`); got != want {
			t.Errorf("%s\n got %q\nwant %q", hash, got, want)
		}
	}
}

// spec: HTTP-5
func TestAtMostTwoPasswordsAtOnce(t *testing.T) {
	if cap(hashing) != 2 {
		t.Fatalf("%d may run at once", cap(hashing))
	}
	hashing <- struct{}{}
	hashing <- struct{}{}
	free := sync.OnceFunc(func() { <-hashing; <-hashing })
	defer free()
	w := open(t, "", nil)
	done := make(chan string)
	begin := func(ctx context.Context) {
		m := luavm.NewMeter(ctx, 10_000_000)
		go func() { done <- w.runWith(t, m, `#crypto.password_hash("x")`) }()
		for work, _ := m.Spent(); work < 900_000; work, _ = m.Spent() { // it pays before it waits
			runtime.Gosched()
		}
		select {
		case got := <-done:
			t.Fatalf("a third one ran: %s", got)
		default:
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	begin(ctx)
	cause := errors.New("the test ends it")
	cancel(cause)
	if got := <-done; got != "error: "+cause.Error() {
		t.Fatalf("got %s", got)
	}
	begin(context.Background())
	free()
	if got := <-done; got != "97" {
		t.Fatalf("got %s", got)
	}
}

func TestPasswordInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "", nil)
		if got := w.run(t, `crypto.password_verify("x", crypto.password_hash("x"))`); got != "true" {
			t.Fatal(got)
		}
	})
}
