package columns

import (
	"fmt"
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// invalidMetricError says why a raw value is not valid for a metric.
type invalidMetricError struct{ message string }

// Error implements error.
func (e *invalidMetricError) Error() string { return e.message }

// Normalize maps a raw value to 0 ... 1, where 1 is best:
//
//	ascending   (raw - min) / (max - min)
//	descending  (max - raw) / (max - min)
//
// Example: raw 5 in 0 ... 20 is 0.25, descending 0.75. A value that is not a
// number, out of range or not among the allowed values is an
// *InvalidMetricError; nothing is clamped. (spec/krake-scheduling.rst, Metrics
// and Metrics Providers.)
func Normalize(spec api.MetricSpec, raw float64) (float64, error) {
	if spec.Min == nil || spec.Max == nil || !(*spec.Min < *spec.Max) {
		return 0, &invalidMetricError{"the metric has no range: min must be below max"}
	}
	low, high := *spec.Min, *spec.Max
	switch {
	case math.IsNaN(raw) || math.IsInf(raw, 0):
		return 0, &invalidMetricError{fmt.Sprintf("the value %v is not a finite number", raw)}
	case raw < low || raw > high:
		return 0, &invalidMetricError{fmt.Sprintf("the value %v is outside of the range %v to %v", raw, low, high)}
	case len(spec.AllowedValues) > 0 && !slices.Contains(spec.AllowedValues, raw):
		return 0, &invalidMetricError{fmt.Sprintf("the value %v is not one of the allowed values %v", raw, spec.AllowedValues)}
	}
	if math.IsInf(high-low, 0) {
		raw, low, high = raw/2, low/2, high/2
	}
	if spec.Direction == api.Descending {
		return (high - raw) / (high - low), nil
	}
	return (raw - low) / (high - low), nil
}
