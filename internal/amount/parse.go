package amount

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	// ErrMalformed is returned for text that is not a Kubernetes quantity.
	ErrMalformed = errors.New(`not a quantity: write a number with an optional suffix, such as "4", "1500m" or "64Gi"`)

	// ErrOutOfRange is returned for quantities that Kubernetes cannot represent.
	ErrOutOfRange = errors.New("out of range: a quantity is at most 9223372036854775807, which is just below 8Ei")
)

// shape restricts Kubernetes notation: a digit is required (Kubernetes reads "Gi" as 0), and the exponent has at most two
// digits, because the Kubernetes parser needs minutes and gigabytes for "1e999999999".
var shape = regexp.MustCompile(`^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2}|[numkKMGTPE]i?)?$`)

// Parse returns a Kubernetes quantity, rounded up to thousandths: "1500m" is 1500, "64Gi" is 68719476736000. The error
// is ErrMalformed or ErrOutOfRange.
func Parse(text string) (Milli, error) {
	if milli, ok := parsePlain(text); ok {
		return Of(milli), nil
	}
	if !shape.MatchString(text) {
		return Milli{}, ErrMalformed
	}
	v, err := resource.ParseQuantity(text)
	if err != nil {
		return Milli{}, ErrMalformed
	}
	if v.CmpInt64(parsesExactly) < 0 && v.CmpInt64(-parsesExactly) > 0 {
		return Of(v.MilliValue()), nil
	}
	return parseLarge(text)
}

// parsesExactly is the number of units below which the Kubernetes parser is exact to thousandths. It reads larger
// quantities with errors, and replaces those that are out of range by the largest.
const parsesExactly = 1 << 52

// parseLarge is Parse for a valid quantity of any size.
func parseLarge(text string) (Milli, error) {
	number, factor := text, big.NewRat(1000, 1)
	at := strings.IndexFunc(number, unicode.IsLetter)
	if at >= 0 && !strings.ContainsAny(number[at+1:], "0123456789") { // otherwise an exponent
		one := resource.MustParse("1" + number[at:]) // the suffix is valid
		by, _ := new(big.Rat).SetString(one.AsDec().String())
		number, factor = number[:at], factor.Mul(factor, by)
	}
	exact, ok := new(big.Rat).SetString(number)
	if !ok {
		return Milli{}, ErrMalformed
	}
	exact.Mul(exact, factor)
	// Rounded up, like smaller ones.
	milli, rest := new(big.Int).DivMod(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		milli.Add(milli, big.NewInt(1))
	}
	units, rest := milli.DivMod(milli, big.NewInt(1000), rest)
	if !units.IsInt64() || units.Int64() == math.MaxInt64 && rest.Sign() > 0 {
		return Milli{}, ErrOutOfRange
	}
	return Units(units.Int64()).Plus(Of(rest.Int64())), nil
}

// parsePlain parses the most common form quickly: digits with an optional suffix, far from the limits. Thousands of
// clusters report their amounts every few seconds.
func parsePlain(text string) (int64, bool) {
	n, digits := int64(0), 0
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		n = n*10 + int64(text[digits]-'0')
		digits++
		if digits > 15 {
			return 0, false
		}
	}
	if digits == 0 {
		return 0, false
	}
	unit := int64(1000)
	switch text[digits:] {
	case "":
	case "m":
		unit = 1
	case "k":
		unit *= 1e3
	case "M":
		unit *= 1e6
	case "G":
		unit *= 1e9
	case "Ki":
		unit <<= 10
	case "Mi":
		unit <<= 20
	case "Gi":
		unit <<= 30
	case "Ti":
		unit <<= 40
	default:
		return 0, false
	}
	return n * unit, n <= math.MaxInt64/unit
}
