package lualib

import (
	"bytes"
	"errors"
	"math"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"weir/pkg/value"
)

var (
	errClaims = errors.New("the claims are no object")
	errDate   = errors.New("the claims exp, nbf and iat must be numbers, the seconds since 1970")
)

// claimSet is a token's claims: the bytes that are signed, read by package value, so that what is checked here and what
// app code gets are the same.
type claimSet struct {
	data   []byte
	values map[string]any
}

// UnmarshalJSON takes the claims.
func (c *claimSet) UnmarshalJSON(data []byte) error {
	v, err := value.Parse(data)
	if err != nil {
		return err
	}
	values, ok := v.(map[string]any)
	if !ok {
		return errClaims
	}
	c.data, c.values = bytes.Clone(data), values
	return nil
}

// MarshalJSON gives the claims.
func (c *claimSet) MarshalJSON() ([]byte, error) { return c.data, nil }

// check says whether the dates are dates.
func (c *claimSet) check() error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if _, err := c.date(name); err != nil {
			return err
		}
	}
	return nil
}

// date gives a claim that is a time, nil if it is absent.
func (c *claimSet) date(name string) (*jwt.NumericDate, error) {
	if c.values == nil { // the claims were null
		return nil, errClaims
	}
	switch v := c.values[name].(type) {
	case nil:
		return nil, nil
	case int64:
		return &jwt.NumericDate{Time: time.Unix(v, 0)}, nil
	case float64:
		if math.Abs(v) <= value.MaxInteger {
			seconds, part := math.Modf(v)
			return &jwt.NumericDate{Time: time.Unix(int64(seconds), int64(part*1e9))}, nil
		}
	}
	return nil, errDate
}

// GetExpirationTime gives exp.
func (c *claimSet) GetExpirationTime() (*jwt.NumericDate, error) { return c.date("exp") }

// GetNotBefore gives nbf.
func (c *claimSet) GetNotBefore() (*jwt.NumericDate, error) { return c.date("nbf") }

// GetIssuedAt gives iat.
func (c *claimSet) GetIssuedAt() (*jwt.NumericDate, error) { return c.date("iat") }

// GetIssuer, GetSubject and GetAudience are left to the app.
func (c *claimSet) GetIssuer() (string, error) { return "", nil }

// GetSubject is GetIssuer's like.
func (c *claimSet) GetSubject() (string, error) { return "", nil }

// GetAudience is GetIssuer's like.
func (c *claimSet) GetAudience() (jwt.ClaimStrings, error) { return nil, nil }
