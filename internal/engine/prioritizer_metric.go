package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// metricScore is a live metric that the clusters list: its normalised value n
// mapped to 200·n - 100, and 0 where it has no usable value.
type metricScore struct{ metric string }

func (m metricScore) Name() string { return m.metric }

func (m metricScore) Key(k *Key) {
	k.Text("type", string(api.PrioritizerMetric))
	k.Text("metric", m.metric)
}

func (metricScore) Reads() Aspects { return MetricValues }

func (m metricScore) Metric() string { return m.metric }

func (m metricScore) Rate(r *Rating, _, row int) float64 {
	if state := m.of(r.fleet, row); state != nil {
		return float64(200*state.normalized) - 100
	}
	return 0
}

func (m metricScore) Observe(r *Rating, i, row int, _ bool) (float64, observation) {
	return m.Rate(r, i, row), m.observe(r.fleet, row)
}

func (m metricScore) observe(f *Fleet, row int) observation {
	state := m.listed(f, row)
	switch {
	case state == nil:
		return observation{reason: fmt.Sprintf("absent: the cluster lists no metric %q; counts as 0", m.metric)}
	case !state.usable:
		return observation{reason: state.describe("") + "; counts as 0"}
	}
	raw := state.raw
	return observation{raw: &raw, metric: &state.key}
}

// of is the first metric of the name that a cluster lists, nil where it has no
// usable value.
func (m metricScore) of(f *Fleet, row int) *metricState {
	if state := m.listed(f, row); state != nil && state.usable {
		return state
	}
	return nil
}

// listed is the first metric of the name that a cluster lists.
func (m metricScore) listed(f *Fleet, row int) *metricState {
	for _, listed := range f.rows[row].metrics {
		if state := f.metrics[listed.id]; state.key.Name == m.metric {
			return state
		}
	}
	return nil
}
