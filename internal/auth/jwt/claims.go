package jwt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	josejwt "github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-json-experiment/json/jsontext"
)

// claimSet contains all claims of a token, with numbers as written.
type claimSet map[string]any

// parseClaims reads the claims of a token. The error is the end of a sentence about the token.
func parseClaims(payload []byte) (claimSet, error) {
	var all claimSet
	if err := decodeStrictly("its claims are", payload, (*map[string]any)(&all)); err != nil {
		return nil, err
	}
	return all, nil
}

// decodeStrictly reads a JSON object in which no name occurs twice: two readers may see different ones (RFC 7519,
// section 4). The error is a sentence that starts with what the object is.
func decodeStrictly(it string, text []byte, into *map[string]any) error {
	checked := jsontext.NewDecoder(bytes.NewReader(text))
	value, err := checked.ReadValue()
	var syntax *jsontext.SyntacticError
	if errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax) {
		return fmt.Errorf("%s not clear: %.100q is given twice", it, syntax.JSONPointer.LastToken())
	}
	if err == nil && value.Kind() == '{' {
		d := json.NewDecoder(bytes.NewReader(value))
		d.UseNumber()
		err = d.Decode(into)
		if _, more := checked.ReadToken(); err == nil && errors.Is(more, io.EOF) {
			return nil
		}
	}
	return fmt.Errorf("%s not a JSON object", it)
}

// registered returns the claims that RFC 7519, section 4.1, gives a meaning. null is as good as absent.
func (c claimSet) registered() (claims josejwt.Claims, err error) {
	if claims.Issuer, err = c.text("iss"); err != nil {
		return claims, err
	}
	if claims.Subject, err = c.text("sub"); err != nil {
		return claims, err
	}
	if claims.Audience, err = c.audience(); err != nil {
		return claims, err
	}
	if claims.Expiry, err = c.time("exp"); err != nil {
		return claims, err
	}
	if claims.NotBefore, err = c.time("nbf"); err != nil {
		return claims, err
	}
	claims.IssuedAt, err = c.time("iat")
	return claims, err
}

// text returns a claim that is a string.
func (c claimSet) text(name string) (string, error) {
	switch value := c[name].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", fmt.Errorf("its claim %s must be a string, not %s", name, describe(value))
	}
}

// audience returns the claim aud.
func (c claimSet) audience() (josejwt.Audience, error) {
	switch value := c["aud"].(type) {
	case nil:
		return nil, nil
	case string:
		return josejwt.Audience{value}, nil
	case []any:
		var all josejwt.Audience
		for _, element := range value {
			text, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("its claim aud must be a string or a list of strings, and the list contains %s", describe(element))
			}
			all = append(all, text)
		}
		return all, nil
	default:
		return nil, fmt.Errorf("its claim aud must be a string or a list of strings, not %s", describe(value))
	}
}

// lastSecond is the end of the year 9999, the last one that RFC 3339 can write.
const lastSecond = 253402300799

// time returns a claim that is a time.
func (c claimSet) time(name string) (*josejwt.NumericDate, error) {
	switch value := c[name].(type) {
	case nil:
		return nil, nil
	case json.Number:
		seconds, err := value.Float64()
		if err != nil || math.Abs(seconds) > lastSecond {
			return nil, fmt.Errorf("its claim %s must be a time in seconds since 1970, before the year 10000: are these milliseconds?", name)
		}
		date := josejwt.NumericDate(seconds)
		return &date, nil
	default:
		return nil, fmt.Errorf("its claim %s must be a number, the seconds since 1970, not %s", name, describe(value))
	}
}

// describe names the type of a JSON value.
func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
