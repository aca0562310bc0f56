package lualib

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// What a token's header says of keys counts for nothing: a token is of the key that the app names, or of none.
//
// spec: HTTP-5
func TestJWTBringsItsKey(t *testing.T) {
	w := openWithKeys(t)
	const admin, other = `{"sub":"admin"}`, "nil|the signature is not of this key"
	b64 := base64.RawURLEncoding.EncodeToString
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := point.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	okp := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"ed_pub","x":%q}`, b64(public))
	ec := fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q}`, b64(raw[1:33]), b64(raw[33:]))
	oct := fmt.Sprintf(`{"kty":"oct","k":%q}`, b64([]byte("the-key-of-the-attacker")))
	good, theirs := hs(jwt.SigningMethodHS256, hidden), hs(jwt.SigningMethodHS256, "the-key-of-the-attacker")
	edSign := func(text string) []byte { return ed25519.Sign(private, []byte(text)) }
	ecSign := func(text string) []byte {
		sig, err := jwt.SigningMethodES256.Sign(text, point)
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	for _, c := range []struct {
		what, header string
		sign         func(string) []byte
		key, want    string
	}{
		{"jwk, Ed25519", `{"alg":"EdDSA","jwk":` + okp + `}`, edSign, "ed_pub", other},
		{"jwk, P-256", `{"alg":"ES256","jwk":` + ec + `}`, ecSign, "ec_pub", other},
		{"jwk, shared", `{"alg":"HS256","jwk":` + oct + `}`, theirs, "key", other},
		{"jwk, empty and shared", `{"alg":"HS256","jwk":{"kty":"oct","k":""}}`, hs(jwt.SigningMethodHS256, ""), "key", other},
		{"jwk of another kind", `{"alg":"EdDSA","jwk":` + okp + `}`, edSign, "key", "nil|the token's algorithm is not HS256"},
		{"jku", `{"alg":"HS256","jku":"https://evil.test/keys.json"}`, theirs, "key", other},
		{"jku to a file", `{"alg":"EdDSA","jku":"file:///dev/null"}`, edSign, "ed_pub", other},
		{"x5u", `{"alg":"ES256","x5u":"https://evil.test/cert.pem"}`, ecSign, "ec_pub", other},
		{"x5c", `{"alg":"ES256","x5c":["MIIB"]}`, ecSign, "ec_pub", other},
		{"kid of another key", `{"alg":"EdDSA","kid":"ed2_pub"}`, edSign, "ed_pub", other},
		{"kid as a path", `{"alg":"HS256","kid":"../../../../dev/null"}`, hs(jwt.SigningMethodHS256, ""), "key", other},
		{"kid as SQL", `{"alg":"HS256","kid":"x' UNION SELECT 'the-key-of-the-attacker"}`, theirs, "key", other},
		{"kid that is no text", `{"alg":"HS256","kid":{"a":[1]}}`, theirs, "key", other},
		{"all of them, and the app's key", `{"alg":"HS256","jwk":` + oct + `,"jku":"https://evil.test/","kid":"x","x5u":"https://evil.test/","x5c":[]}`, good, "key", "admin|nil"},
	} {
		alg := map[string]string{"key": "HS256", "ed_pub": "EdDSA", "ec_pub": "ES256"}[c.key]
		w.set("token", forge(c.header, admin, c.sign))
		t.Run(c.what, func(t *testing.T) {
			w.check(t, []luaCase{{`local c, why = jwt.verify(token, ` + c.key + `, { alg = "` + alg + `" }) return c and c.sub, why`, c.want}})
		})
	}
}

// Of a name that comes twice the last one counts, to the check and to the app alike; names are compared letter by letter.
// Whichever alg it is, the signature must be of the key under the algorithm that the app names.
//
// spec: HTTP-5
func TestJWTSaysThingsTwice(t *testing.T) {
	w := openWithKeys(t)
	const hs256, admin, not = `{"alg":"HS256"}`, `{"sub":"admin"}`, "nil|the token's algorithm is not HS256"
	const dates, expired, early = "nil|the claims exp, nbf and iat must be numbers, the seconds since 1970", "nil|the token has expired", "nil|the token is not valid yet"
	good := hs(jwt.SigningMethodHS256, hidden)
	for _, c := range []struct {
		what, header, claims string
		sign                 func(string) []byte
		want                 string
	}{
		{"alg none first", `{"alg":"none","alg":"HS256"}`, admin, good, "admin|nil"},
		{"alg none first, not signed", `{"alg":"none","alg":"HS256"}`, admin, nil, "nil|the signature is not of this key"},
		{"alg none last", `{"alg":"HS256","alg":"none"}`, admin, good, not},
		{"alg none last, not signed", `{"alg":"HS256","alg":"none"}`, admin, nil, not},
		{"alg null last", `{"alg":"HS256","alg":null}`, admin, good, not},
		{"alg null first, not signed", `{"alg":null,"alg":"HS256"}`, admin, nil, "nil|the signature is not of this key"},
		{"another alg last", `{"alg":"HS256","alg":"HS512"}`, admin, hs(jwt.SigningMethodHS512, hidden), not},
		{"another alg first", `{"alg":"HS512","alg":"HS256"}`, admin, hs(jwt.SigningMethodHS512, hidden), "nil|the signature is not of this key"},
		{"alg escaped", `{"alg":"HS256","\u0061lg":"none"}`, admin, nil, not},
		{"ALG", `{"ALG":"HS256"}`, admin, good, not},
		{"ALG beside alg", `{"alg":"none","ALG":"HS256","Alg":"HS256"}`, admin, good, not},
		{"crit last", `{"alg":"HS256","crit":null,"crit":["b64"]}`, admin, good, "nil|the token asks for an extension (crit) that is not known here"},
		{"crit first", `{"alg":"HS256","crit":["b64"],"crit":null}`, admin, good, "nil|the token asks for an extension (crit) that is not known here"},
		{"sub", hs256, `{"sub":"guest","sub":"admin"}`, good, "admin|nil"},
		{"sub, the other way", hs256, `{"sub":"admin","sub":"guest"}`, good, "guest|nil"},
		{"sub null last", hs256, `{"sub":"admin","sub":null}`, good, "nil|nil"},
		{"sub in other letters", hs256, `{"sub":"guest","SUB":"admin","Sub":"admin"}`, good, "guest|nil"},
		{"exp past last", hs256, `{"sub":"admin","exp":9999999999,"exp":1}`, good, expired},
		{"exp past first", hs256, `{"sub":"admin","exp":1,"exp":9999999999}`, good, "admin|nil"},
		{"exp escaped", hs256, `{"sub":"admin","exp":9999999999,"\u0065xp":1}`, good, expired},
		{"EXP does not end it", hs256, `{"sub":"admin","EXP":1}`, good, "admin|nil"},
		{"EXP does not extend it", hs256, `{"sub":"admin","exp":1,"EXP":9999999999}`, good, expired},
		{"exp as text last", hs256, `{"sub":"admin","exp":9999999999,"exp":"x"}`, good, dates},
		{"nbf to come last", hs256, `{"sub":"admin","nbf":1,"nbf":9999999999}`, good, early},
		{"nbf to come first", hs256, `{"sub":"admin","nbf":9999999999,"nbf":1}`, good, "admin|nil"},
		{"two objects of claims", hs256, admin + `{"sub":"other"}`, good, "nil|the token is malformed"},
		{"two headers", hs256 + `{"alg":"none"}`, admin, good, "nil|the token is malformed"},
	} {
		w.set("token", forge(c.header, c.claims, c.sign))
		t.Run(c.what, func(t *testing.T) {
			w.check(t, []luaCase{{`local c, why = jwt.verify(token, key, { alg = "HS256" }) return c and c.sub, why`, c.want}})
		})
	}
	// What was checked is what the app gets.
	w.set("token", forge(hs256, `{"exp":1,"exp":9999999999,"a":{"b":1,"b":2}}`, good))
	w.check(t, []luaCase{{`json.stringify((jwt.verify(token, key, { alg = "HS256" })))`, `{"a":{"b":2},"exp":9999999999}`}})
}
