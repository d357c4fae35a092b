package api

import (
	"fmt"
	"strings"
	"time"

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

// Milli returns the quantity in thousandths, rounded up. Example: "1500m" is 1500, "64Gi" is
// 68719476736000. A quantity larger than Kubernetes allows is an error.
func (q Quantity) Milli() (amount.Milli, error) {
	milli, err := amount.Parse(string(q))
	if err != nil {
		return milli, fmt.Errorf("%q is %w", string(q), err)
	}
	return milli, nil
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

// Quantities maps resource names ("cpu", "memory", "nvidia.com/gpu") to amounts.
type Quantities map[string]Quantity

// FormatMilli formats thousandths as a quantity: 1500 of cpu is "1500m", 68719476736000 of memory
// is "64Gi".
func FormatMilli(name string, milli amount.Milli) Quantity {
	return Quantity(milli.Text(IsBytes(name)))
}

// IsBytes reports whether a resource is counted in bytes.
func IsBytes(name string) bool {
	return name == ResourceMemory || name == "ephemeral-storage" || name == "storage" ||
		strings.HasPrefix(name, "hugepages-") || strings.HasPrefix(name, ResourceStoragePrefix)
}
