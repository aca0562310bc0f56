package lualib

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	lua "github.com/yuin/gopher-lua"
)

// The algorithms of jwt, each with the kind of key it takes.
var (
	methods = map[string]jwt.SigningMethod{
		"HS256": jwt.SigningMethodHS256, "HS384": jwt.SigningMethodHS384, "HS512": jwt.SigningMethodHS512,
		"RS256": jwt.SigningMethodRS256, "ES256": jwt.SigningMethodES256, "EdDSA": jwt.SigningMethodEdDSA,
	}
	methodNames = "HS256, HS384, HS512, RS256, ES256 and EdDSA"
)

const (
	minShared = 16       // bytes of a key for HS256 and its like
	maxKey    = 64 << 10 // bytes of any key
	minRSA    = 2048     // bits, RFC 7518 section 3.3
	maxRSA    = 8192     // bits; more would cost a call its time
)

// What reading and using a key costs in instructions. RSA's grows with the cube of its bits.
const (
	curveWork = 5_000
	rsaWork   = 50_000 // of 2048 bits
)

// tokenKey is a key made ready for one algorithm.
type tokenKey struct {
	method jwt.SigningMethod
	key    any
}

// tokenKey reads the option alg and the key. Errors show nothing of the key.
func (l *library) tokenKey(L *lua.LState, what string, options *lua.LTable, text string, signing bool) (tokenKey, error) {
	alg, ok := options.RawGetString("alg").(lua.LString)
	if !ok {
		return tokenKey{}, fmt.Errorf("name the algorithm, alg = \"HS256\": one of %s", methodNames)
	}
	method := methods[string(alg)]
	if method == nil {
		return tokenKey{}, fmt.Errorf("there is no algorithm %q: alg is one of %s", short(string(alg)), methodNames)
	}
	if len(text) > maxKey {
		return tokenKey{}, fmt.Errorf("the key has more than %d bytes", maxKey)
	}
	l.spend(L, tokenWork+len(text)/bytesPerWork)
	if _, ok := method.(*jwt.SigningMethodHMAC); ok {
		if strings.Contains(text, "-----BEGIN ") {
			return tokenKey{}, fmt.Errorf("%s takes a shared secret, and this is a PEM key: name RS256, ES256 or EdDSA", alg)
		}
		if len(text) < minShared {
			return tokenKey{}, fmt.Errorf("the key of %s must have at least %d bytes: take a random one, as from crypto.random(32)", alg, minShared)
		}
		return tokenKey{method, []byte(text)}, nil
	}
	l.spend(L, curveWork)
	private, public, err := readPEM(text)
	if err != nil {
		return tokenKey{}, fmt.Errorf("the key of %s must be PEM: %w", alg, err)
	}
	switch p := public.(type) {
	case *rsa.PublicKey:
		bits := p.N.BitLen()
		if method != jwt.SigningMethodRS256 || bits < minRSA || bits > maxRSA {
			return tokenKey{}, wrongKey(method, "RSA", bits)
		}
		k := bits / 1024
		l.spend(L, rsaWork*k*k*k/8)
	case *ecdsa.PublicKey:
		if method != jwt.SigningMethodES256 || p.Curve != elliptic.P256() {
			return tokenKey{}, wrongKey(method, "elliptic curve", p.Params().BitSize)
		}
	case ed25519.PublicKey:
		if method != jwt.SigningMethodEdDSA {
			return tokenKey{}, wrongKey(method, "Ed25519", 8*len(p))
		}
	}
	if !signing {
		return tokenKey{method, public}, nil
	}
	if private == nil {
		return tokenKey{}, errors.New("signing takes the private key, and this is the public one")
	}
	return tokenKey{method, private}, nil
}

func wrongKey(method jwt.SigningMethod, kind string, bits int) error {
	wants := map[string]string{"RS256": fmt.Sprintf("an RSA key of %d to %d bits", minRSA, maxRSA), "ES256": "a key of the curve P-256", "EdDSA": "an Ed25519 key"}
	return fmt.Errorf("%s takes %s, and this is one of %s, %d bits", method.Alg(), wants[method.Alg()], kind, bits)
}

// readPEM reads the first block of a PEM text: a private key, and then its public one too, or a public key or
// certificate, and then private is nil.
func readPEM(text string) (private, public any, err error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, nil, errors.New("there is no block -----BEGIN … KEY-----; keep the line breaks of the file")
	}
	var key any
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var c *x509.Certificate
		if c, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = c.PublicKey
		}
	default:
		err = errors.New("unknown")
	}
	if err != nil { // it may quote the key
		return nil, nil, errors.New("its first block cannot be read as a key; an encrypted one must be decrypted before")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, &k.PublicKey, nil
	case *ecdsa.PrivateKey:
		return k, &k.PublicKey, nil
	case ed25519.PrivateKey:
		return k, k.Public(), nil
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return nil, k, nil
	}
	return nil, nil, errors.New("it is a key of a kind that does not sign")
}
