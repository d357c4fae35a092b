package score

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// metricScore maps the normalized value n of a metric that clusters list to 200·n - 100, and to 0
// if there is no usable value. The name is resolved as in metric constraints.
type metricScore struct{ namespace, metric string }

// Name implements prioritizer.
func (m metricScore) Name() string { return m.metric }

// Key implements prioritizer.
func (m metricScore) Key(k key.Writer) {
	k.Text("namespace", m.namespace)
	k.Text("metric", m.metric)
}

// Reads implements prioritizer.
func (metricScore) Reads() columns.Aspects { return columns.MetricValues }

// Metric implements naming.
func (m metricScore) Metric() string { return m.metric }

// Rate implements rater.
func (m metricScore) Rate(r *Rating, _, row int) float64 {
	if state := m.of(r.Fleet, row); state != nil {
		return float64(200*state.Normalized) - 100
	}
	return 0
}

// Observe implements observable.
func (m metricScore) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	return m.Rate(r, i, row), m.observe(r.Fleet, row)
}

func (m metricScore) observe(f *columns.Fleet, row int) observation {
	state := m.listed(f, row)
	switch {
	case state == nil:
		return observation{reason: fmt.Sprintf("absent: the cluster lists no metric %q; counts as 0", m.metric)}
	case !state.Usable:
		return observation{reason: state.Describe(m.namespace) + "; counts as 0"}
	}
	raw := state.Raw
	return observation{raw: &raw, metric: &state.Key}
}

// of returns the metric of a cluster, or nil if it has no usable value.
func (m metricScore) of(f *columns.Fleet, row int) *columns.MetricState {
	if state := m.listed(f, row); state != nil && state.Usable {
		return state
	}
	return nil
}

// listed returns the metric with the name that a cluster lists, or nil.
func (m metricScore) listed(f *columns.Fleet, row int) *columns.MetricState {
	if listed, ok := f.MetricNamed(m.namespace, m.metric, row); ok {
		return f.MetricOf(row, listed)
	}
	return nil
}
