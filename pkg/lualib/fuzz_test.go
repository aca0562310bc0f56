package lualib

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	lua "github.com/yuin/gopher-lua"

	"weir/pkg/luavm"
)

// call runs a snippet with the globals a and b, and gives its results as text, or what it raised.
func (w *world) call(t testing.TB, c *luavm.Chunk, a, b string) (out []string, raised string) {
	t.Helper()
	w.set("a", a)
	w.set("b", b)
	got, err := w.VM.Run(luavm.NewMeter(context.Background(), 10_000_000), c)
	if err != nil {
		return nil, err.Error()
	}
	for _, v := range got {
		if v == lua.LNil {
			out = append(out, "nil")
		} else {
			out = append(out, v.String())
		}
	}
	return out, ""
}

func chunk(t testing.TB, src string) *luavm.Chunk {
	t.Helper()
	c, err := luavm.Compile("test.lua", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A token passes only if another implementation takes it with this key and this algorithm; else there are nil and a
// reason. Nothing that a token says raises, and no reason shows the key.
// spec: HTTP-5, HTTP-6
func FuzzJWT(f *testing.F) {
	good := forge(`{"alg":"HS256"}`, `{"sub":"ada"}`, hs(jwt.SigningMethodHS256, hidden))
	part := strings.Split(good, ".")
	for _, s := range []string{
		good, "", "..", good + "=", good + ".", part[0] + "." + part[1] + ".", "." + part[1] + "." + part[2],
		forge(`{"alg":"none"}`, `{}`, nil), forge(`{"alg":"HS256","alg":"none"}`, `{}`, nil), forge(`{"alg":"HS512"}`, `{}`, hs(jwt.SigningMethodHS512, hidden)),
		forge(`{"alg":"HS256","crit":["exp"]}`, `{}`, hs(jwt.SigningMethodHS256, hidden)), forge(`{"alg":"HS256"}`, `{"exp":1}`, hs(jwt.SigningMethodHS256, hidden)),
		forge("\ufeff"+`{"alg":"HS256"}`, "\x00", hs(jwt.SigningMethodHS256, hidden)), "eyJhbGciOiJIUzI1NiJ9\n." + part[1] + "." + part[2],
	} {
		f.Add(s, "{}")
	}
	// The claims below are signed with the key, so that what stands behind the signature is reached, too.
	for _, s := range []string{`{"sub":"ada"}`, `[]`, `null`, `{"exp":"x"}`, `{"exp":1e999}`, `{"nbf":-0}`, `{"a":{"b":[1,null]}}`, "{\"a\":\"\xff\"}", `{"a":1}{}`, `{"exp":9007199254740993}`} {
		f.Add(good, s)
	}
	w := open(f, "", nil)
	verify := chunk(f, `local c, why = jwt.verify(a, key, { alg = "HS256" }) if c then return "claims", json.stringify(c) end return tostring(c), why`)
	sign := hs(jwt.SigningMethodHS256, hidden)
	f.Fuzz(func(t *testing.T, token, claims string) {
		for _, tok := range []string{token, forge(`{"alg":"HS256"}`, claims, sign)} {
			got, raised := w.call(t, verify, tok, "")
			if raised != "" || len(got) != 2 || got[1] == "" || strings.Contains(got[1], hidden) {
				t.Fatalf("%q: %q, raised %q", tok, got, raised)
			}
			if got[0] == "nil" {
				continue
			}
			_, err := jwt.Parse(tok, func(*jwt.Token) (any, error) { return []byte(hidden), nil }, jwt.WithValidMethods([]string{"HS256"}), jwt.WithoutClaimsValidation())
			if err != nil {
				t.Fatalf("%q passes with %s, and another implementation says %v", tok, got[1], err)
			}
			payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(tok, ".")[1])
			if !json.Valid(payload) || !json.Valid([]byte(got[1])) {
				t.Fatalf("%q gives claims that are no JSON: %s", tok, got[1])
			}
		}
	})
}

// What the decoders of app code take is what its encoders give; the rest is nil and a reason, and never raises.
// spec: HTTP-5, STO-3
func FuzzDecoders(f *testing.F) {
	for _, s := range []string{"", "d2Vpcg==", "d2Vpcg", "d2Vpcg=", "d2Vpch==", "__4", "-_+/", "7765697", "7765697Z", "77656972", "a%20b", "%", "%zz", "a+b%2", "\xff\x00", "d2Vp\ncg==", `{"a":[1.5,null]}`, `[`} {
		f.Add(s)
	}
	w := open(f, "", nil)
	decode := chunk(f, `local out = {} for _, d in ipairs({ base64.decode, hex.decode, url.decode }) do
		local text, why = d(a) out[#out + 1] = text or "nil" out[#out + 1] = text and "ok" or why end return unpack(out)`)
	encode := chunk(f, `return base64.encode(a), base64.url_encode(a), hex.encode(a), url.encode(a), base64.decode(base64.encode(a)) == a,
		base64.decode(base64.url_encode(a)) == a, hex.decode(hex.encode(a)) == a, url.decode(url.encode(a)) == a`)
	again := chunk(f, `return json.stringify(json.parse(a))`)
	f.Fuzz(func(t *testing.T, text string) {
		got, raised := w.call(t, decode, text, "")
		if raised != "" || len(got) != 6 {
			t.Fatalf("%q: %q, raised %q", text, got, raised)
		}
		for i := 1; i < len(got); i += 2 {
			if got[i] == "" || got[i] == "nil" {
				t.Fatalf("%q: no reason from decoder %d", text, i/2)
			}
		}
		enc, raised := w.call(t, encode, text, "")
		if raised != "" || strings.Join(enc[4:], " ") != "true true true true" {
			t.Fatalf("%q is encoded as %q, raised %q", text, enc, raised)
		}
		if got[3] == "ok" && strings.ToLower(text) != hexOf(t, w, got[2]) {
			t.Fatalf("%q is no hex of %q", text, got[2])
		}
		one, raised := w.call(t, again, text, "")
		if raised == "" {
			if two, raised := w.call(t, again, one[0], ""); raised != "" || two[0] != one[0] || !utf8.ValidString(one[0]) {
				t.Fatalf("%q is written as %q, and that as %q %s", text, one, two, raised)
			}
		} else if !strings.Contains(raised, "bad value: ") {
			t.Fatalf("%q: %s", text, raised)
		}
	})
}

func hexOf(t testing.TB, w *world, text string) string {
	t.Helper()
	got, raised := w.call(t, chunk(t, `return hex.encode(a)`), text, "")
	if raised != "" {
		t.Fatal(raised)
	}
	return got[0]
}
