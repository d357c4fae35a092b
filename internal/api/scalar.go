package api

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
)

// Duration is a duration as the user wrote it ("60s", "1m30s"). The text is kept, so that clients
// read back what they wrote.
type Duration string

// Parse returns the duration. Empty text is zero.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write a number with a unit, such as \"60s\", \"5m\" or \"1h30m\"", string(d))
	}
	return v, nil
}

// Or returns the duration, or fallback if it is absent or malformed. Validated objects have no
// malformed durations.
func (d Duration) Or(fallback time.Duration) time.Duration {
	if d == "" {
		return fallback
	}
	v, err := d.Parse()
	if err != nil {
		return fallback
	}
	return v
}

// check describes why the duration is invalid, or returns "". An absent duration is valid.
func (d Duration) check(least time.Duration) string {
	if d == "" {
		return ""
	}
	v, err := d.Parse()
	switch {
	case err != nil:
		return err.Error()
	case v < 0 && least == 0:
		return fmt.Sprintf("%q must not be negative", string(d))
	case v < least:
		return fmt.Sprintf("%q must be at least %s", string(d), least)
	}
	return ""
}

// Quantity is an amount of a resource as the user wrote it, in Kubernetes notation: "4", "1500m",
// "64Gi".
type Quantity string

// quantityShape restricts Kubernetes notation: a digit is required (Kubernetes reads "Gi" as 0),
// and the exponent has at most two digits, because the Kubernetes parser needs minutes and
// gigabytes for "1e999999999".
var quantityShape = regexp.MustCompile(`^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2}|[numkKMGTPE]i?)?$`)

// Milli returns the quantity in thousandths, rounded up. Example: "1500m" is 1500, "64Gi" is
// 68719476736000. A quantity larger than Kubernetes allows is an error.
func (q Quantity) Milli() (amount.Milli, error) {
	if milli, ok := q.plainMilli(); ok {
		return amount.Of(milli), nil
	}
	if !quantityShape.MatchString(string(q)) {
		return amount.Milli{}, q.malformed()
	}
	v, err := resource.ParseQuantity(string(q))
	if err != nil {
		return amount.Milli{}, q.malformed()
	}
	if v.CmpInt64(parsesExactly) < 0 && v.CmpInt64(-parsesExactly) > 0 {
		return amount.Of(v.MilliValue()), nil
	}
	return q.largeMilli()
}

// parsesExactly is the number of units below which the Kubernetes parser is exact to thousandths.
// It reads larger quantities with errors, and replaces those that are out of range by the largest.
const parsesExactly = 1 << 52

// largeMilli is Milli for a valid quantity of any size.
func (q Quantity) largeMilli() (amount.Milli, error) {
	number, factor := string(q), big.NewRat(1000, 1)
	at := strings.IndexFunc(number, unicode.IsLetter)
	if at >= 0 && !strings.ContainsAny(number[at+1:], "0123456789") { // otherwise an exponent
		one := resource.MustParse("1" + number[at:]) // the suffix is valid
		by, _ := new(big.Rat).SetString(one.AsDec().String())
		number, factor = number[:at], factor.Mul(factor, by)
	}
	exact, ok := new(big.Rat).SetString(number)
	if !ok {
		return amount.Milli{}, q.malformed()
	}
	exact.Mul(exact, factor)
	// Rounded up, like smaller ones.
	milli, rest := new(big.Int).DivMod(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		milli.Add(milli, big.NewInt(1))
	}
	units, rest := milli.DivMod(milli, big.NewInt(1000), rest)
	if !units.IsInt64() || units.Int64() == math.MaxInt64 && rest.Sign() > 0 {
		return amount.Milli{}, fmt.Errorf("%q is out of range: a quantity is at most %d, which is just below 8Ei", string(q), int64(math.MaxInt64))
	}
	return amount.Units(units.Int64()).Plus(amount.Of(rest.Int64())), nil
}

func (q Quantity) malformed() error {
	return fmt.Errorf("%q is not a quantity: write a number with an optional suffix, such as \"4\", \"1500m\" or \"64Gi\"", string(q))
}

// check describes why the quantity is invalid, or returns "".
func (q Quantity) check() string {
	milli, err := q.Milli()
	switch {
	case err != nil:
		return err.Error()
	case milli.Sign() < 0:
		return fmt.Sprintf("%q must not be negative", string(q))
	}
	return ""
}

// plainMilli parses the most common form quickly: digits with an optional suffix, far from the
// limits. Thousands of clusters report their amounts every few seconds.
func (q Quantity) plainMilli() (int64, bool) {
	n, digits := int64(0), 0
	for digits < len(q) && '0' <= q[digits] && q[digits] <= '9' {
		n = n*10 + int64(q[digits]-'0')
		digits++
		if digits > 15 {
			return 0, false
		}
	}
	if digits == 0 {
		return 0, false
	}
	unit := int64(1000)
	switch q[digits:] {
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

// Quantities maps resource names ("cpu", "memory", "nvidia.com/gpu") to amounts.
type Quantities map[string]Quantity

// FormatMilli formats thousandths as a quantity: 1500 of cpu is "1500m", 68719476736000 of memory
// is "64Gi".
func FormatMilli(name string, milli amount.Milli) Quantity {
	binary := name == ResourceMemory || name == "ephemeral-storage" || name == "storage" || strings.HasPrefix(name, ResourceStoragePrefix)
	return Quantity(milli.Text(binary))
}
