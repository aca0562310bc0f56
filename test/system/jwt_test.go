package system

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash"
	"math/big"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const jwtApp = `
-- main.lua --
object "J" {
    verify = function(state, token, key, opts)
        local ok, claims, reason = pcall(jwt.verify, token, key, opts)
        if not ok then return { raised = tostring(claims) } end
        return { claims = claims, reason = reason }
    end,
    sign = function(state, claims, key, opts)
        local ok, token = pcall(jwt.sign, claims, key, opts)
        return ok and token or { raised = tostring(token) }
    end,
}
`

type verified struct {
	Claims json.RawMessage
	Reason string
	Raised string
}

// jwts signs and verifies with the app's functions.
type jwts struct {
	t *testing.T
	s *testkit.System
}

func (j jwts) verify(token, key, opts string) (v verified) {
	j.t.Helper()
	if err := json.Unmarshal([]byte(j.s.MustCall("J/j", "verify", quoted(token), quoted(key), opts)), &v); err != nil {
		j.t.Fatal(err)
	}
	return v
}

func (j jwts) sign(claims, key, opts string) (token string) {
	j.t.Helper()
	if got := j.s.MustCall("J/j", "sign", claims, quoted(key), opts); json.Unmarshal([]byte(got), &token) != nil {
		j.t.Fatalf("sign %s: %s", opts, got)
	}
	return token
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

// token makes one as RFC 7515 says, without the app's functions.
func token(header, claims string, sign func(text []byte) []byte) string {
	b := base64.RawURLEncoding
	text := b.EncodeToString([]byte(header)) + "." + b.EncodeToString([]byte(claims))
	return text + "." + b.EncodeToString(sign([]byte(text)))
}

func hs(h func() hash.Hash, key string) func([]byte) []byte {
	return func(text []byte) []byte {
		m := hmac.New(h, []byte(key))
		m.Write(text)
		return m.Sum(nil)
	}
}

func block(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

const (
	jwtKey = "a key of thirty-two bytes......."
	hs256  = `{"alg":"HS256","typ":"JWT"}`
	ada    = `{"sub":"ada"}`
)

// keyPair is an algorithm with its keys as PEM, and how it signs without the app's functions.
type keyPair struct {
	alg, private, public string
	sign                 func(text []byte) []byte
}

func keyPairs(t *testing.T) []keyPair {
	t.Helper()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pair := func(alg string, key crypto.Signer, sign func([]byte) []byte) keyPair {
		private, err := x509.MarshalPKCS8PrivateKey(key)
		p := keyPair{alg: alg, private: block(t, "PRIVATE KEY", private, err), sign: sign}
		public, err := x509.MarshalPKIXPublicKey(key.Public())
		p.public = block(t, "PUBLIC KEY", public, err)
		return p
	}
	return []keyPair{
		{"HS256", jwtKey, jwtKey, hs(sha256.New, jwtKey)},
		{"HS384", jwtKey + jwtKey, jwtKey + jwtKey, hs(sha512.New384, jwtKey+jwtKey)},
		{"HS512", jwtKey + jwtKey, jwtKey + jwtKey, hs(sha512.New, jwtKey+jwtKey)},
		pair("RS256", rsaKey, func(text []byte) []byte {
			sum := sha256.Sum256(text)
			sig, _ := rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, sum[:])
			return sig
		}),
		pair("ES256", ecKey, func(text []byte) []byte {
			sum := sha256.Sum256(text)
			r, s, _ := ecdsa.Sign(rand.Reader, ecKey, sum[:])
			return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}),
		pair("EdDSA", edKey, func(text []byte) []byte { return ed25519.Sign(edKey, text) }),
	}
}

// Every algorithm signs what it verifies, verifies what another program signed, and nothing of another algorithm: a
// public key is no HMAC key.
// spec: HTTP-5
func TestJWTAlgorithms(t *testing.T) {
	pairs := keyPairs(t)
	testkit.Bubble(t, txtar.Parse([]byte(jwtApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		j := jwts{t, s}
		for _, p := range pairs {
			opts := fmt.Sprintf(`{"alg":%q}`, p.alg)
			own := j.sign(ada, p.private, opts)
			foreign := token(fmt.Sprintf(`{"alg":%q}`, p.alg), ada, p.sign)
			for name, tok := range map[string]string{"own": own, "another program's": foreign} {
				if v := j.verify(tok, p.public, opts); !strings.Contains(string(v.Claims), `"sub":"ada"`) {
					t.Errorf("%s: %s token: %s %s", p.alg, name, v.Claims, v.Reason+v.Raised)
				}
				i := strings.LastIndexByte(tok, '.') + 1
				flipped := tok[:i] + map[bool]string{true: "B", false: "A"}[tok[i] == 'A'] + tok[i+1:]
				if v := j.verify(flipped, p.public, opts); v.Claims != nil || v.Reason == "" {
					t.Errorf("%s: %s token with another signature: %+v", p.alg, name, v)
				}
			}
			for _, q := range pairs {
				if q.alg == p.alg {
					continue
				}
				if v := j.verify(own, q.public, fmt.Sprintf(`{"alg":%q}`, q.alg)); v.Claims != nil {
					t.Errorf("a %s token passes as %s", p.alg, q.alg)
				}
				confused := token(fmt.Sprintf(`{"alg":%q}`, q.alg), ada, hs(sha256.New, p.public))
				if q.alg == "HS256" && p.public != jwtKey {
					if v := j.verify(confused, p.public, opts); v.Claims != nil {
						t.Errorf("%s: a token signed with the public key's text passes", p.alg)
					}
				}
			}
		}
	})
}

// What is no token of this key gives nil and a reason, never claims, and takes nothing down.
// spec: HTTP-5
func TestJWTRefused(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(jwtApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		j := jwts{t, s}
		sign, now := hs(sha256.New, jwtKey), time.Now().Unix()
		none := func([]byte) []byte { return nil }
		good := token(hs256, ada, sign)
		part := strings.Split(good, ".")
		for name, tok := range map[string]string{
			"alg none":             token(`{"alg":"none"}`, ada, none),
			"alg None":             token(`{"alg":"None"}`, ada, none),
			"alg none, signed":     token(`{"alg":"none"}`, ada, sign),
			"no alg":               token(`{"typ":"JWT"}`, ada, sign),
			"alg of another case":  token(`{"alg":"hs256"}`, ada, sign),
			"alg HS512":            token(`{"alg":"HS512"}`, ada, hs(sha512.New, jwtKey)),
			"alg a list":           token(`{"alg":["HS256"]}`, ada, sign),
			"another key":          token(hs256, ada, hs(sha256.New, "another key of thirty-two bytes.")),
			"no signature":         part[0] + "." + part[1] + ".",
			"half a signature":     good[:len(good)-20],
			"other claims":         part[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"eve"}`)) + "." + part[2],
			"two parts":            part[0] + "." + part[1],
			"four parts":           good + ".x",
			"empty":                "",
			"dots":                 "..",
			"no base64":            "!." + part[1] + "." + part[2],
			"padded":               good + "=",
			"a line's end":         good + "\n",
			"claims a list":        token(hs256, `["ada"]`, sign),
			"claims no JSON":       token(hs256, `{"sub":`, sign),
			"claims twice":         token(hs256, ada+ada, sign),
			"claims too deep":      token(hs256, `{"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`, sign),
			"claims not UTF-8":     token(hs256, "{\"sub\":\"\xff\"}", sign),
			"an integer too large": token(hs256, `{"id":9007199254740993}`, sign),
			"expired":              token(hs256, fmt.Sprintf(`{"exp":%d}`, now-3600), sign),
			"expired, a fraction":  token(hs256, fmt.Sprintf(`{"exp":%d.5}`, now-3600), sign),
			"expiry zero":          token(hs256, `{"exp":0}`, sign),
			"expiry negative":      token(hs256, `{"exp":-1}`, sign),
			"expiry a text":        token(hs256, `{"exp":"never"}`, sign),
			"not yet":              token(hs256, fmt.Sprintf(`{"nbf":%d}`, now+3600), sign),
			"not yet, a text":      token(hs256, `{"nbf":"always"}`, sign),
			"not before the end":   token(hs256, `{"nbf":1e300}`, sign),
			"huge":                 strings.Repeat("a", 700<<10),
			"hugely dotted":        strings.Repeat(".", 700<<10),
			"huge and unsigned":    token(hs256, `{"sub":"`+strings.Repeat("x", 300<<10)+`"}`, none),
		} {
			if v := j.verify(tok, jwtKey, `{"alg":"HS256"}`); v.Claims != nil || v.Raised != "" || v.Reason == "" {
				t.Errorf("%s: %s %s", name, v.Claims, v.Reason+v.Raised)
			}
		}
		if v := j.verify(good, jwtKey, `{"alg":"HS256"}`); string(v.Claims) != ada {
			t.Errorf("a good one: %+v", v)
		}
		for _, opts := range []string{`null`, `{}`, `{"alg":"none"}`, `{"alg":""}`, `{"alg":"HS128"}`, `{"alg":["HS256"]}`} { // the algorithm must be named
			if v := j.verify(good, jwtKey, opts); v.Claims != nil || v.Raised+v.Reason == "" {
				t.Errorf("verify with %s: %+v", opts, v)
			}
			if got := s.MustCall("J/j", "sign", ada, quoted(jwtKey), opts); !strings.Contains(got, "raised") {
				t.Errorf("sign with %s: %s", opts, got)
			}
		}
	})
}

// Signatures that only look like some: zeros, another encoding, another curve.
// spec: HTTP-5
func TestJWTSignatures(t *testing.T) {
	pairs := keyPairs(t)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(other.Public())
	p384 := block(t, "PUBLIC KEY", der, err)
	testkit.Bubble(t, txtar.Parse([]byte(jwtApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		j := jwts{t, s}
		header := `{"alg":"ES256"}`
		for name, c := range map[string]struct {
			key string
			sig func([]byte) []byte
		}{
			"zeros": {pairs[4].public, func([]byte) []byte { return make([]byte, 64) }},
			"the order": {pairs[4].public, func([]byte) []byte {
				return append(elliptic.P256().Params().N.Bytes(), big.NewInt(1).FillBytes(make([]byte, 32))...)
			}},
			"too long":      {pairs[4].public, func(text []byte) []byte { return append(pairs[4].sign(text), 0) }},
			"none":          {pairs[4].public, func([]byte) []byte { return nil }},
			"another curve": {p384, pairs[4].sign},
			"no key":        {"", pairs[4].sign},
			"an RSA key":    {pairs[3].public, pairs[4].sign},
			"no PEM":        {"-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----\n", pairs[4].sign},
		} {
			if v := j.verify(token(header, ada, c.sig), c.key, header); v.Claims != nil || v.Reason+v.Raised == "" {
				t.Errorf("%s: %+v", name, v)
			}
		}
	})
}

// A token's time: from its not-before to its expiry.
// spec: HTTP-5
func TestJWTExpires(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(jwtApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		j := jwts{t, s}
		hour := j.sign(ada, jwtKey, `{"alg":"HS256","expires":"1h"}`)
		ever := j.sign(ada, jwtKey, `{"alg":"HS256"}`)
		later := j.sign(fmt.Sprintf(`{"nbf":%d}`, time.Now().Add(30*time.Minute).Unix()), jwtKey, `{"alg":"HS256"}`)
		for _, step := range []struct {
			wait              time.Duration
			hour, later, ever bool
		}{{0, true, false, true}, {29 * time.Minute, true, false, true}, {2 * time.Minute, true, true, true}, {28 * time.Minute, true, true, true}, {3 * time.Minute, false, true, true}, {time.Hour, false, true, true}} {
			time.Sleep(step.wait)
			for name, c := range map[string]struct {
				token string
				want  bool
			}{"hour": {hour, step.hour}, "later": {later, step.later}, "ever": {ever, step.ever}} {
				if v := j.verify(c.token, jwtKey, `{"alg":"HS256"}`); (v.Claims != nil) != c.want || !c.want && v.Reason == "" {
					t.Errorf("%s, %v later: %+v", name, step.wait, v)
				}
			}
		}
		for _, opts := range []string{`{"alg":"HS256","expires":"soon"}`, `{"alg":"HS256","expires":"-1h"}`, `{"alg":"HS256","expires":true}`} {
			if got := s.MustCall("J/j", "sign", ada, quoted(jwtKey), opts); !strings.Contains(got, "raised") {
				t.Errorf("sign with %s: %s", opts, got)
			}
		}
	})
}
