package api

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Duration is a length of time as the user wrote it ("60s", "1m30s"). The text
// is kept, so what a client reads back is what it wrote.
type Duration string

// Parse returns the duration; the empty text is zero.
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

// Or returns the duration, or fallback where it is absent or malformed. A
// validated object has no malformed ones.
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

// check returns what is wrong with the duration, or "".
func (d Duration) check(least time.Duration) string {
	v, err := d.Parse()
	switch {
	case err != nil:
		return err.Error()
	case v < least:
		return fmt.Sprintf("%q must be at least %s", string(d), least)
	}
	return ""
}

// Quantity is an amount of a resource as the user wrote it, in Kubernetes'
// notation: "4", "1500m", "64Gi".
type Quantity string

// Milli returns the quantity in thousandths, rounded up, and saturated at the
// largest int64 (9.2 P of a unit). Example: "1500m" is 1500, "64Gi" is
// 68719476736000.
func (q Quantity) Milli() (int64, error) {
	v, err := resource.ParseQuantity(string(q))
	if err != nil {
		return 0, fmt.Errorf("%q is not a quantity: write a number with an optional suffix, such as \"4\", \"1500m\" or \"64Gi\"", string(q))
	}
	if v.CmpInt64(math.MaxInt64/1000) > 0 {
		return math.MaxInt64, nil
	}
	return v.MilliValue(), nil
}

// Quantities maps resource names ("cpu", "memory", "nvidia.com/gpu") to
// amounts.
type Quantities map[string]Quantity

// FormatMilli renders thousandths as a quantity: 1500 of cpu is "1500m",
// 68719476736000 of memory is "64Gi".
func FormatMilli(name string, milli int64) Quantity {
	format := resource.DecimalSI
	if name == "memory" || name == "ephemeral-storage" || name == "storage" {
		format = resource.BinarySI
	}
	if milli%1000 == 0 {
		return Quantity(resource.NewQuantity(milli/1000, format).String())
	}
	return Quantity(resource.NewMilliQuantity(milli, format).String())
}
