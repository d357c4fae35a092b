package engine

// metricScore is a live metric that the clusters list: its normalised value n
// mapped to 200·n - 100, and 0 where it has no usable value.
type metricScore struct{ metric string }

func (m metricScore) Name() string { return m.metric }

func (metricScore) figures(*Fleet) figures { return figures{} } // each cluster lists its own

func (m metricScore) rate(f *Fleet, _ *figures, _ *span, row int) float64 {
	if state := m.of(f, row); state != nil {
		return float64(200*state.normalized) - 100
	}
	return 0
}

func (m metricScore) raw(f *Fleet, _ *figures, row int) *float64 {
	if state := m.of(f, row); state != nil {
		raw := state.raw
		return &raw
	}
	return nil
}

// of is the first metric of the name that a cluster lists, nil where it has no
// usable value.
func (m metricScore) of(f *Fleet, row int) *metricState {
	for _, listed := range f.rows[row].metrics {
		if state := f.metrics[listed.id]; state.key.Name == m.metric {
			if state.usable {
				return state
			}
			return nil
		}
	}
	return nil
}
