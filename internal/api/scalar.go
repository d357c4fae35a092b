package api

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
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

// Milli returns the quantity in thousandths, rounded up and saturated at the limits of int64 (9.2 P
// of a unit). Example: "1500m" is 1500, "64Gi" is 68719476736000.
func (q Quantity) Milli() (int64, error) {
	if milli, ok := q.plainMilli(); ok {
		return milli, nil
	}
	v, err := resource.Quantity{}, error(nil)
	ok := quantityShape.MatchString(string(q))
	if ok {
		v, err = resource.ParseQuantity(string(q))
	}
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a quantity: write a number with an optional suffix, such as \"4\", \"1500m\" or \"64Gi\"", string(q))
	}
	switch {
	case v.CmpInt64(math.MaxInt64/1000) > 0:
		return math.MaxInt64, nil
	case v.CmpInt64(math.MinInt64/1000) < 0:
		return math.MinInt64, nil
	}
	return v.MilliValue(), nil
}

// check describes why the quantity is invalid, or returns "".
func (q Quantity) check() string {
	milli, err := q.Milli()
	switch {
	case err != nil:
		return err.Error()
	case milli < 0:
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
func FormatMilli(name string, milli int64) Quantity {
	format := resource.DecimalSI
	if name == ResourceMemory || name == "ephemeral-storage" || name == "storage" || strings.HasPrefix(name, ResourceStoragePrefix) {
		format = resource.BinarySI
	}
	if milli%1000 == 0 {
		return Quantity(resource.NewQuantity(milli/1000, format).String())
	}
	return Quantity(resource.NewMilliQuantity(milli, format).String())
}
