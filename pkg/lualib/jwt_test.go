package lualib

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// keys are PEM texts by the names they have in snippets; made once, since RSA keys take their time.
var keys = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	block := func(name, kind string, der []byte, err error) {
		if err != nil {
			panic(err)
		}
		out[name] = string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	both := func(name string, private, public any) {
		der, err := x509.MarshalPKCS8PrivateKey(private)
		block(name, "PRIVATE KEY", der, err)
		der, err = x509.MarshalPKIXPublicKey(public)
		block(name+"_pub", "PUBLIC KEY", der, err)
	}
	for _, name := range []string{"rsa", "rsa2"} {
		k, _ := rsa.GenerateKey(rand.Reader, 2048)
		both(name, k, &k.PublicKey)
		block(name+"_pkcs1", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k), nil)
		block(name+"_pub_pkcs1", "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.PublicKey), nil)
	}
	weak, _ := rsa.GenerateKey(rand.Reader, 1024)
	both("rsa_weak", weak, &weak.PublicKey)
	for _, name := range []string{"ec", "ec2"} {
		k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		both(name, k, &k.PublicKey)
		der, err := x509.MarshalECPrivateKey(k)
		block(name+"_sec1", "EC PRIVATE KEY", der, err)
	}
	wide, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	both("ec384", wide, &wide.PublicKey)
	for _, name := range []string{"ed", "ed2"} {
		public, private, _ := ed25519.GenerateKey(rand.Reader)
		both(name, private, public)
	}
	out["broken_pem"] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	out["strange_pem"] = "-----BEGIN LETTER-----\nAAAA\n-----END LETTER-----\n"
	return out
})

func openWithKeys(t *testing.T) *world {
	w := open(t, "", nil)
	for name, text := range keys() {
		w.set(name, text)
	}
	return w
}

// spec: HTTP-5
func TestJWTSignsAndVerifies(t *testing.T) {
	w := openWithKeys(t)
	for _, c := range []struct{ alg, sign, verify, other string }{
		{"HS256", "key", "key", "key:reveal() .. 'x'"},
		{"HS256", "key", "key:reveal()", "'another-key-of-some-length'"},
		{"HS384", "key", "key", "key:reveal() .. 'x'"},
		{"HS512", "key", "key", "key:reveal() .. 'x'"},
		{"RS256", "rsa", "rsa_pub", "rsa2_pub"},
		{"RS256", "rsa_pkcs1", "rsa_pub_pkcs1", "rsa2_pub_pkcs1"},
		{"RS256", "rsa", "rsa", "rsa2"},
		{"ES256", "ec", "ec_pub", "ec2_pub"},
		{"ES256", "ec_sec1", "ec", "ec2"},
		{"EdDSA", "ed", "ed_pub", "ed2_pub"},
		{"EdDSA", "ed", "ed", "ed2"},
	} {
		sign := `local t = jwt.sign({ sub = "ada", n = 9007199254740992, list = {}, deep = { 1.5 } }, ` + c.sign + `, { alg = "` + c.alg + `", expires = "1h" }) `
		verify := func(key string) string { return `jwt.verify(t, ` + key + `, { alg = "` + c.alg + `" })` }
		w.check(t, []luaCase{
			{sign + `local c = ` + verify(c.verify) + ` return c.sub, json.stringify(c.n), json.stringify(c.deep), c.exp - c.iat, c.iat - os.time() <= 0`,
				"ada|9007199254740992|[1.5]|3600|true"},
			{sign + `return ` + verify(c.other), "nil|the signature is not of this key"},
		})
	}
}

// spec: HTTP-5
func TestJWTRefusesMistakes(t *testing.T) {
	w := openWithKeys(t)
	const names = "HS256, HS384, HS512, RS256, ES256 and EdDSA"
	w.set("long", strings.Repeat("x", 60<<10))
	w.check(t, []luaCase{
		{`jwt.sign({}, key)`, `error: test.lua:1: jwt.sign takes a table of options third, not nil: jwt.sign({ sub = "ada" }, key, { alg = "HS256", expires = "1h" })`},
		{`jwt.sign({}, key, {})`, `error: test.lua:1: jwt.sign: name the algorithm, alg = "HS256": one of ` + names},
		{`jwt.verify("x", key)`, `error: test.lua:1: jwt.verify takes a table of options third, not nil: jwt.verify(token, key, { alg = "HS256" })`},
		{`jwt.verify("x", key, {})`, `error: test.lua:1: jwt.verify: name the algorithm, alg = "HS256": one of ` + names},
		{`jwt.verify("x", key, { alg = { "HS256" } })`, `error: test.lua:1: jwt.verify: name the algorithm…`},
		{`jwt.sign({}, key, { alg = "none" })`, `error: test.lua:1: jwt.sign: there is no algorithm "none": alg is one of ` + names},
		{`jwt.verify("x", key, { alg = "none" })`, `error: test.lua:1: jwt.verify: there is no algorithm "none": alg is one of ` + names},
		{`jwt.verify("x", key, { alg = "hs256" })`, `error: test.lua:1: jwt.verify: there is no algorithm "hs256"…`},
		{`jwt.verify("x", key, { alg = "PS256" })`, `error: test.lua:1: jwt.verify: there is no algorithm "PS256"…`},
		{`jwt.sign({}, key, { alg = "HS256", expire = "1h" })`, `error: test.lua:1: jwt.sign has no option "expire": the options are alg and expires`},
		{`jwt.verify("x", key, { "HS256" })`, `error: test.lua:1: jwt.verify has no option "1": the options are alg`},
		{`jwt.sign("x", key, { alg = "HS256" })`, `error: test.lua:1: jwt.sign takes a table of claims first, not a string: …`},
		{`jwt.sign({}, nil, { alg = "HS256" })`, `error: test.lua:1: jwt.sign (the key, its second argument) takes a string or a secret, not nil`},
		{`jwt.verify("x", nil, { alg = "HS256" })`, `error: test.lua:1: jwt.verify (the key, its second argument) takes a string or a secret, not nil`},
		{`jwt.verify(5, key, { alg = "HS256" })`, `error: test.lua:1: jwt.verify takes a string, not a number`},
		{`jwt.sign({}, "15-bytes-of-key", { alg = "HS256" })`, `error: test.lua:1: jwt.sign: the key of HS256 must have at least 16 bytes: take a random one, as from crypto.random(32)`},
		{`jwt.verify("x", "", { alg = "HS512" })`, `error: test.lua:1: jwt.verify: the key of HS512 must have at least 16 bytes: …`},
		{`jwt.sign({}, ("x"):rep(70000), { alg = "HS256" })`, `error: test.lua:1: jwt.sign: the key has more than 65536 bytes`},
		{`jwt.sign({}, rsa_pub, { alg = "HS256" })`, `error: test.lua:1: jwt.sign: HS256 takes a shared secret, and this is a PEM key: name RS256, ES256 or EdDSA`},
		{`jwt.sign({}, key, { alg = "RS256" })`, `error: test.lua:1: jwt.sign: the key of RS256 must be PEM: there is no block -----BEGIN … KEY-----; keep the line breaks of the file`},
		{`jwt.sign({}, broken_pem, { alg = "RS256" })`, `error: test.lua:1: jwt.sign: the key of RS256 must be PEM: its first block cannot be read as a key; an encrypted one must be decrypted before`},
		{`jwt.sign({}, strange_pem, { alg = "RS256" })`, `error: test.lua:1: jwt.sign: the key of RS256 must be PEM: its first block cannot be read as a key; …`},
		{`jwt.sign({}, rsa_pub, { alg = "RS256" })`, `error: test.lua:1: jwt.sign: signing takes the private key, and this is the public one`},
		{`jwt.sign({}, ec_pub, { alg = "ES256" })`, `error: test.lua:1: jwt.sign: signing takes the private key, and this is the public one`},
		{`jwt.sign({}, ed_pub, { alg = "EdDSA" })`, `error: test.lua:1: jwt.sign: signing takes the private key, and this is the public one`},
		{`jwt.sign({}, ec, { alg = "RS256" })`, `error: test.lua:1: jwt.sign: RS256 takes an RSA key of 2048 to 8192 bits, and this is one of elliptic curve, 256 bits`},
		{`jwt.sign({}, rsa_weak, { alg = "RS256" })`, `error: test.lua:1: jwt.sign: RS256 takes an RSA key of 2048 to 8192 bits, and this is one of RSA, 1024 bits`},
		{`jwt.verify("x", rsa_weak_pub, { alg = "RS256" })`, `error: test.lua:1: jwt.verify: RS256 takes an RSA key of 2048 to 8192 bits, and this is one of RSA, 1024 bits`},
		{`jwt.verify("x", ec384_pub, { alg = "ES256" })`, `error: test.lua:1: jwt.verify: ES256 takes a key of the curve P-256, and this is one of elliptic curve, 384 bits`},
		{`jwt.verify("x", rsa_pub, { alg = "EdDSA" })`, `error: test.lua:1: jwt.verify: EdDSA takes an Ed25519 key, and this is one of RSA, 2048 bits`},
		{`jwt.verify("x", ed_pub, { alg = "ES256" })`, `error: test.lua:1: jwt.verify: ES256 takes a key of the curve P-256, and this is one of Ed25519, 256 bits`},

		{`jwt.sign({ f = print }, key, { alg = "HS256" })`, `error: bad value: claims.f: a function cannot be stored`},
		{`jwt.sign({ k = key }, key, { alg = "HS256" })`, `error: bad value: claims.k: a secret cannot be stored`},
		{`jwt.sign({ 1, 2 }, key, { alg = "HS256" })`, `error: bad value: claims…`},
		{`jwt.sign({ exp = "tomorrow" }, key, { alg = "HS256" })`, `error: test.lua:1: jwt.sign: the claims exp, nbf and iat must be numbers, the seconds since 1970`},
		{`jwt.sign({ nbf = {} }, key, { alg = "HS256" })`, `error: test.lua:1: jwt.sign: the claims exp, nbf and iat must be numbers, the seconds since 1970`},
		{`jwt.sign({}, key, { alg = "HS256", expires = "soon" })`, `error: test.lua:1: jwt.sign: expires: "soon" is no duration: …`},
		{`jwt.sign({}, key, { alg = "HS256", expires = -1 })`, `error: test.lua:1: jwt.sign: expires: a duration must be positive…`},
		{`jwt.sign({ s = long .. long }, key, { alg = "HS256" })`, `error: bad value: claims: larger than 65536 bytes …`},
		{`jwt.sign({ s = long }, key, { alg = "HS256" })`, `error: test.lua:1: jwt.sign: the token would have …`},
	})
}

// forge makes a token without the library: any header and claims, signed by sign, or with the signature given as it is.
func forge(header, claims string, sign func(string) []byte) string {
	b64 := base64.RawURLEncoding
	text := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(claims))
	if sign == nil {
		return text + "."
	}
	return text + "." + b64.EncodeToString(sign(text))
}

func hs(method *jwt.SigningMethodHMAC, key string) func(string) []byte {
	return func(text string) []byte {
		sig, err := method.Sign(text, []byte(key))
		if err != nil {
			panic(err)
		}
		return sig
	}
}

// spec: HTTP-5
func TestJWTAttacks(t *testing.T) {
	w := openWithKeys(t)
	const admin = `{"sub":"admin"}`
	good := hs(jwt.SigningMethodHS256, hidden)
	whole := forge(`{"alg":"HS256"}`, admin, good)
	part := strings.Split(whole, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	for _, c := range []struct{ what, token, key, alg, want string }{
		{"whole", whole, "key", "HS256", "admin"},
		{"alg none", forge(`{"alg":"none"}`, admin, nil), "key", "HS256", "nil|the token's algorithm is not HS256"},
		{"alg None", forge(`{"alg":"None"}`, admin, nil), "key", "HS256", "nil|the token's algorithm is not HS256"},
		{"alg none for a public key", forge(`{"alg":"none"}`, admin, nil), "rsa_pub", "RS256", "nil|the token's algorithm is not RS256"},
		{"no alg", forge(`{"typ":"JWT"}`, admin, nil), "key", "HS256", "nil|the token's algorithm is not HS256"},
		{"alg that is no text", forge(`{"alg":["HS256"]}`, admin, good), "key", "HS256", "nil|the token's algorithm is not HS256"},
		{"header null", forge(`null`, admin, good), "key", "HS256", "nil|the token's algorithm is not HS256"},
		{"header no object", forge(`"HS256"`, admin, good), "key", "HS256", "nil|the token is malformed"},
		{"no signature", part[0] + "." + part[1] + ".", "key", "HS256", "nil|the signature is not of this key"},
		{"the public key taken as a shared secret", forge(`{"alg":"HS256"}`, admin, hs(jwt.SigningMethodHS256, keys()["rsa_pub"])), "rsa_pub", "RS256", "nil|the token's algorithm is not RS256"},
		{"the same with the right alg", forge(`{"alg":"RS256"}`, admin, hs(jwt.SigningMethodHS256, keys()["rsa_pub"])), "rsa_pub", "RS256", "nil|the signature is not of this key"},
		{"the same for ES256", forge(`{"alg":"HS256"}`, admin, hs(jwt.SigningMethodHS256, keys()["ec_pub"])), "ec_pub", "ES256", "nil|the token's algorithm is not ES256"},
		{"another HS", forge(`{"alg":"HS512"}`, admin, hs(jwt.SigningMethodHS512, hidden)), "key", "HS256", "nil|the token's algorithm is not HS256"},
		{"null signature of ES256", forge(`{"alg":"ES256"}`, admin, func(string) []byte { return make([]byte, 64) }), "ec_pub", "ES256", "nil|the signature is not of this key"},
		{"empty signature of EdDSA", forge(`{"alg":"EdDSA"}`, admin, nil), "ed_pub", "EdDSA", "nil|the signature is not of this key"},
		{"other claims", part[0] + "." + b64([]byte(`{"sub":"other"}`)) + "." + part[2], "key", "HS256", "nil|the signature is not of this key"},
		{"other header", b64([]byte(`{"alg":"HS256","x":1}`)) + "." + part[1] + "." + part[2], "key", "HS256", "nil|the signature is not of this key"},
		{"cut signature", whole[:len(whole)-3], "key", "HS256", "nil|the signature is not of this key"},
		{"its last bits", whole[:len(whole)-1] + next(whole[len(whole)-1:]), "key", "HS256", "nil|the token is malformed"},
		{"padded", whole + "=", "key", "HS256", "nil|the token is malformed"},
		{"line break", part[0] + "." + part[1] + "\n." + part[2], "key", "HS256", "nil|the token is malformed"},
		{"two parts", part[0] + "." + part[1], "key", "HS256", "nil|the token is malformed"},
		{"four parts", whole + ".x", "key", "HS256", "nil|the token is malformed"},
		{"empty", "", "key", "HS256", "nil|the token is malformed"},
		{"a word", "hello", "key", "HS256", "nil|the token is malformed"},
		{"dots", strings.Repeat(".", 60_000), "key", "HS256", "nil|the token is malformed"},
		{"oversized", forge(`{"alg":"HS256"}`, `{"a":"`+strings.Repeat("x", 64<<10)+`"}`, good), "key", "HS256", "nil|the token has more than 65536 bytes"},
		{"unknown extension", forge(`{"alg":"HS256","crit":["b64"],"b64":false}`, admin, good), "key", "HS256", "nil|the token asks for an extension (crit) that is not known here"},
		{"claims null", forge(`{"alg":"HS256"}`, `null`, good), "key", "HS256", "nil|the claims are no object"},
		{"claims array", forge(`{"alg":"HS256"}`, `[1]`, good), "key", "HS256", "nil|the claims are no object"},
		{"claims no JSON", forge(`{"alg":"HS256"}`, `{`, good), "key", "HS256", "nil|the token is malformed"},
		{"exp as text", forge(`{"alg":"HS256"}`, `{"exp":"9999999999"}`, good), "key", "HS256", "nil|the claims exp, nbf and iat must be numbers, the seconds since 1970"},
		{"exp beyond all time", forge(`{"alg":"HS256"}`, `{"exp":1e300}`, good), "key", "HS256", "nil|the claims exp, nbf and iat must be numbers, the seconds since 1970"},
		{"exp below all time", forge(`{"alg":"HS256"}`, `{"exp":-9007199254740992}`, good), "key", "HS256", "nil|the token has expired"},
		{"an integer that would be rounded", forge(`{"alg":"HS256"}`, `{"id":9007199254740993}`, good), "key", "HS256", "nil|bad value: …"},
		{"nested deep", forge(`{"alg":"HS256"}`, `{"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`, good), "key", "HS256", "nil|bad value: …"},
		{"no UTF-8", forge(`{"alg":"HS256"}`, "{\"a\":\"\xff\"}", good), "key", "HS256", "nil|bad value: …"},
	} {
		w.set("token", c.token)
		t.Run(c.what, func(t *testing.T) {
			w.check(t, []luaCase{{`local c, why = jwt.verify(token, ` + c.key + `, { alg = "` + c.alg + `" }) if c then return c.sub end return c, why`, c.want}})
		})
	}
	w.check(t, []luaCase{{`jwt.verify(nil, key, { alg = "HS256" })`, "nil|there is no token"}})
}

// next gives the base64 digit after c: of the last digit of 32 bytes the lowest bits say nothing.
func next(c string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(digits[strings.Index(digits, c)+1])
}

// spec: HTTP-5
func TestJWTTime(t *testing.T) {
	keys()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "", nil)
		const verify = `local c, why = jwt.verify(token, key, { alg = "HS256" }) return c and c.sub, why`
		after := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			if got := w.run(t, verify); got != want {
				t.Errorf("at %s: got %q, want %q", time.Now(), got, want)
			}
		}
		w.set("token", w.run(t, `jwt.sign({ sub = "ada", exp = 5, iat = 5 }, key, { alg = "HS256", expires = "1h" })`))
		after(0, "ada|nil")
		after(time.Hour-time.Nanosecond, "ada|nil")
		after(time.Nanosecond, "nil|the token has expired")

		w.set("token", w.run(t, `jwt.sign({ sub = "ada" }, key, { alg = "HS256", expires = "1500ms" })`)) // whole seconds, not fewer
		after(2*time.Second-time.Nanosecond, "ada|nil")
		after(time.Nanosecond, "nil|the token has expired")

		w.set("token", w.run(t, `jwt.sign({ sub = "ada", nbf = os.time() + 60 }, key, { alg = "HS256" })`))
		after(0, "nil|the token is not valid yet")
		after(59*time.Second, "nil|the token is not valid yet")
		after(time.Second, "ada|nil")
		after(100*365*24*time.Hour, "ada|nil") // without exp it does not end

		w.set("token", w.run(t, `jwt.sign({ sub = "ada", exp = os.time() + 0.5 }, key, { alg = "HS256" })`))
		after(0, "ada|nil")
		after(time.Second, "nil|the token has expired")
		if got := w.run(t, `jwt.verify(jwt.sign({ iat = 1 }, key, { alg = "HS256" }), key, { alg = "HS256" }).iat == os.time()`); got != "true" {
			t.Errorf("iat: %s", got)
		}
	})
}

// The example of RFC 7515, appendix A.1; it ended in 2011, and virtual time starts in 2000.
//
// spec: HTTP-5
func TestJWTVector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "", nil)
		w.set("token", "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"+
			".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"+
			".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
		w.set("k", "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
		w.check(t, []luaCase{{`json.stringify((jwt.verify(token, base64.decode(k), { alg = "HS256" })))`,
			`{"exp":1300819380,"http://example.com/is_root":true,"iss":"joe"}`}})
		time.Sleep(time.Until(time.Unix(1300819380, 0)))
		w.check(t, []luaCase{{`jwt.verify(token, base64.decode(k), { alg = "HS256" })`, "nil|the token has expired"}})
	})
}

// What is signed here is read by others.
//
// spec: HTTP-5
func TestJWTIsReadByOthers(t *testing.T) {
	w := openWithKeys(t)
	token := w.run(t, `jwt.sign({ sub = "a<b>&ü", aud = { "x" } }, key, { alg = "HS256", expires = 60 })`)
	claims := jwt.MapClaims{}
	parsed, err := jwt.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return []byte(hidden), nil })
	if err != nil || claims["sub"] != "a<b>&ü" || parsed.Header["typ"] != "JWT" {
		t.Fatalf("%v %v %v", err, claims, parsed)
	}
	end, _ := claims.GetExpirationTime()
	made, _ := claims.GetIssuedAt()
	if d := end.Sub(made.Time); d != time.Minute {
		t.Errorf("it lives %s", d)
	}
}
