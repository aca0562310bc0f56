package lualib

import (
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lua "github.com/yuin/gopher-lua"

	"weir/pkg/app"
	"weir/pkg/luavm"
	"weir/pkg/value"
)

// maxToken bounds a token in bytes; what is longer fits into no header.
const maxToken = 64 << 10

// tokenWork is what a token costs in instructions beside its bytes and its key.
const tokenWork = 300

// jwtSign is jwt.sign(claims, key, { alg = "HS256", expires = "1h" }): a token that says when it was made (iat) and,
// with expires, when it ends (exp). Both replace what the claims had.
func (l *library) jwtSign(L *lua.LState) int {
	const what, example = "jwt.sign", `jwt.sign({ sub = "ada" }, key, { alg = "HS256", expires = "1h" })`
	given := table(L, 1, what+" takes a table of claims first", example)
	key := secretText(L, 2, what+" (the key, its second argument)")
	options := table(L, 3, what+" takes a table of options third", example)
	only(L, options, what, "alg", "expires")
	signer, err := l.tokenKey(L, what, options, key, true)
	if err != nil {
		L.RaiseError("%s: %s", what, err.Error())
	}

	claims := L.NewTable()
	given.ForEach(claims.RawSet)
	now := time.Now().Unix()
	claims.RawSetString("iat", lua.LNumber(now))
	if v := options.RawGetString("expires"); v != lua.LNil {
		ms, err := app.Duration(v)
		if err != nil {
			L.RaiseError("%s: expires: %s", what, err.Error())
		}
		claims.RawSetString("exp", lua.LNumber(now+(ms+999)/1000))
	}
	data, err := value.Encode(claims, "claims", maxToken)
	if err != nil {
		luavm.Raise(L, err)
	}
	l.read(L, jsonWork*len(data))
	set := new(claimSet)
	if err = set.UnmarshalJSON(data); err == nil {
		err = set.check()
	}
	if err != nil {
		L.RaiseError("%s: %s", what, err.Error())
	}
	token, err := jwt.NewWithClaims(signer.method, set).SignedString(signer.key)
	if err != nil {
		L.RaiseError("%s: the key does not sign with %s: %s", what, signer.method.Alg(), err.Error())
	}
	if len(token) > maxToken {
		L.RaiseError("%s: the token would have %d bytes, more than %d: keep the data in an object and its name in the claims", what, len(token), maxToken)
	}
	return give(L, token)
}

// jwtVerify is jwt.verify(token, key, { alg = "HS256" }): the claims, or nil and a reason. No token (nil) is a reason
// too; a key or algorithm that cannot be one raises.
func (l *library) jwtVerify(L *lua.LState) int {
	const what, example = "jwt.verify", `jwt.verify(token, key, { alg = "HS256" })`
	key := secretText(L, 2, what+" (the key, its second argument)")
	options := table(L, 3, what+" takes a table of options third", example)
	only(L, options, what, "alg")
	verifier, err := l.tokenKey(L, what, options, key, false)
	if err != nil {
		L.RaiseError("%s: %s", what, err.Error())
	}
	if L.Get(1) == lua.LNil {
		return refuse(L, "there is no token")
	}
	token := text(L, 1, what)
	if len(token) > maxToken {
		return refuse(L, "the token has more than %d bytes", maxToken)
	}
	if strings.ContainsAny(token, "\r\n") { // a decoder of base64 would skip them: one token would have many texts
		return refuse(L, "the token is malformed")
	}
	l.grow(jsonMemory * len(token))
	l.read(L, jsonWork*len(token))

	alg, set := verifier.method.Alg(), new(claimSet)
	parser := jwt.NewParser(jwt.WithValidMethods([]string{alg}), jwt.WithStrictDecoding(), jwt.WithTimeFunc(time.Now))
	parsed, err := parser.ParseWithClaims(token, set, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok { // it asks for an extension, and there is none here (RFC 7515, 4.1.11)
			return nil, errCritical
		}
		return verifier.key, nil
	})
	if err != nil {
		return refuse(L, "%s", reason(parsed, alg, err))
	}
	claims, err := value.Decode(L, set.data, "claims")
	if err != nil {
		return refuse(L, "%s", err.Error())
	}
	L.Push(claims)
	return 1
}

var errCritical = errors.New("the token asks for an extension (crit) that is not known here")

// reason says why a token was refused. It shows nothing of the token and nothing of the key.
func reason(token *jwt.Token, alg string, err error) string {
	var bad *value.Error
	switch {
	case errors.As(err, &bad):
		return bad.Error()
	case errors.Is(err, errClaims):
		return errClaims.Error()
	case errors.Is(err, errDate):
		return errDate.Error()
	case errors.Is(err, errCritical):
		return errCritical.Error()
	case errors.Is(err, jwt.ErrTokenExpired):
		return "the token has expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return "the token is not valid yet"
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "the token is malformed"
	case token != nil && token.Header["alg"] != alg:
		return "the token's algorithm is not " + alg
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return "the signature is not of this key"
	}
	return "the token cannot be verified"
}
