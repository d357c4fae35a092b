package api

import (
	"math"
	"time"
)

// Metric is a live value: where it is read, and which range of values maps to the scores 0 to 1.
type Metric struct {
	Kind     Kind         `json:"kind" enum:"metric"`
	Metadata Metadata     `json:"metadata"`
	Spec     MetricSpec   `json:"spec"`
	Status   MetricStatus `json:"status,omitzero"`
}

// Direction is whether high or low values of a metric are better.
type Direction string

// Directions of a metric.
const (
	Ascending  Direction = "ascending"
	Descending Direction = "descending"
)

// OnFailure is what happens to a cluster whose metric has no usable value.
type OnFailure string

// Values of OnFailure.
const (
	// FailureExclude excludes the cluster.
	FailureExclude OnFailure = "exclude"
	// FailureIgnore leaves the metric out of the cluster's score.
	FailureIgnore OnFailure = "ignore"
	// FailureLastValue keeps using the last good value, whatever its age.
	FailureLastValue OnFailure = "last_value"
)

// MetricSpec is the user's configuration of a metric.
type MetricSpec struct {
	Min             *float64          `json:"min,omitempty" required:"true" doc:"Value that maps to 0, or to 1 if 'direction' is 'descending'."`
	Max             *float64          `json:"max,omitempty" required:"true" doc:"Value that maps to 1, or to 0 if 'direction' is 'descending'. Must be greater than 'min'."`
	AllowedValues   []float64         `json:"allowed_values,omitempty" absent:"all values in the range" doc:"Values that are valid. Any other value is invalid."`
	MetricsProvider MetricProviderRef `json:"metrics_provider" doc:"Where the value is read."`
	Direction       Direction         `json:"direction,omitempty" enum:"ascending,descending" default:"ascending" doc:"'ascending': higher values are better. 'descending': lower values are better."`
	OnFailure       OnFailure         `json:"on_failure,omitempty" enum:"exclude,ignore,last_value" default:"exclude" doc:"What happens to a cluster whose metric has no usable value: 'exclude': it gets no new decision; 'ignore': it is rated without the metric; 'last_value': it is rated by the last value. In each case, present decisions keep the cluster while the metric cannot be read."`
	MaxAge          Duration          `json:"max_age,omitempty" doc:"How long the last valid value remains usable while the provider cannot be reached. If omitted, 4 times the provider's interval."`
}

// MetricProviderRef names the provider, and the name or query of the metric in it.
type MetricProviderRef struct {
	Name   string `json:"name" ref:"metrics_provider,own,optional" doc:"Name of the metrics provider, in the namespace of the metric."`
	Metric string `json:"metric" maxLength:"4096" doc:"What to ask the provider for. Prometheus: an expression. InfluxDB: a measurement, optionally as 'measurement.field{tag=\"value\"}', with names that contain a dot in double quotes. ksqlDB: the value in the comparison column. Static: a name. HTTP JSON: what '${metric}' stands for."`
}

// MetricStatus is the last observation.
type MetricStatus struct {
	ObservedGeneration int64       `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	Value              *float64    `json:"value,omitempty" doc:"Last valid raw value."`
	Normalized         *float64    `json:"normalized,omitempty" doc:"Last valid value mapped to the range 0 to 1, where 1 is best."`
	ObservedAt         *time.Time  `json:"observed_at,omitempty" doc:"When the value was last seen valid. While the metric is available, this is updated only when the value changes."`
	Conditions         []Condition `json:"conditions,omitempty" doc:"Conditions that the server observed."`
	// Clusters holds the last observation for each cluster, if each cluster has its own value.
	Clusters map[string]MetricReading `json:"clusters,omitempty" doc:"Values by cluster, if the provider's URL or value refers to the cluster. Not shown to tokens that are limited to namespaces; they find the values that they may see in the status of the clusters."`
}

// MetricReading is the last observation of a metric for one cluster.
type MetricReading struct {
	Value      *float64   `json:"value,omitempty" doc:"Last valid raw value."`
	ObservedAt *time.Time `json:"observed_at,omitempty" doc:"When the value was last seen valid. While the metric is available, this is updated only when the value changes."`
	Reason     string     `json:"reason,omitempty" doc:"Why there is no current value. Absent if there is one."`
	Message    string     `json:"message,omitempty" doc:"Explanation, as a sentence."`
}

// ObjectKind implements Object.
func (m *Metric) ObjectKind() Kind { return KindMetric }

// Meta implements Object.
func (m *Metric) Meta() *Metadata { return &m.Metadata }

// SpecPart implements Object.
func (m *Metric) SpecPart() any { return &m.Spec }

// StatusPart implements Object.
func (m *Metric) StatusPart() any { return &m.Status }

// Copy implements Object.
func (m *Metric) Copy() Object { d := *m; return &d }

// Secrets implements Object.
func (m *Metric) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (m *Metric) SetSecret(string, Secret) {}

// ProviderKey returns the key of the metrics provider: in the metric's own namespace, or global for
// a global metric.
func (m *Metric) ProviderKey() Key {
	return Key{Kind: KindMetricsProvider, Namespace: m.Metadata.Namespace, Name: m.Spec.MetricsProvider.Name}
}

// SetDefaults implements Object.
func (m *Metric) SetDefaults() {
	m.Kind = KindMetric
	m.Metadata.setDefaults(GlobalOrNamespaced)
	setDefaults(&m.Spec)
}

// Validate implements Object.
func (m *Metric) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(m, GlobalOrNamespaced)
	s := &m.Spec
	finite := func(field string, v *float64) bool {
		switch {
		case v == nil:
			errs.Add(field, "is required")
		case math.IsNaN(*v) || math.IsInf(*v, 0):
			errs.Add(field, "%v must be a finite number", *v)
		default:
			return true
		}
		return false
	}
	okMin, okMax := finite("spec.min", s.Min), finite("spec.max", s.Max)
	if okMin && okMax {
		switch {
		case *s.Min >= *s.Max:
			errs.Add("spec.max", "%v must be above spec.min, which is %v", *s.Max, *s.Min)
		case math.IsInf(*s.Max-*s.Min, 0):
			errs.Add("spec.max", "the range from %v to %v is too wide: choose bounds that are closer together", *s.Min, *s.Max)
		}
	}
	for i, v := range s.AllowedValues {
		if okMin && okMax && !(v >= *s.Min && v <= *s.Max) {
			errs.Add(index("spec.allowed_values", i), "%v must be from spec.min, which is %v, to spec.max, which is %v", v, *s.Min, *s.Max)
		}
	}
	errs.check("spec.metrics_provider.name", checkName(s.MetricsProvider.Name))
	if s.MetricsProvider.Metric == "" {
		errs.Add("spec.metrics_provider.metric", "is required: the name or expression to ask the provider for")
	}
	return errs.inOrder(m)
}
