package engine

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// metricsAvailable rejects a cluster that lists a metric which has no usable
// value, unless the metric says to be ignored then.
type metricsAvailable struct{}

func (metricsAvailable) Name() string          { return "metrics_available" }
func (metricsAvailable) Grounds(*Query) int    { return 1 }
func (metricsAvailable) On(*Query, int) string { return "" }
func (metricsAvailable) Blame(_ *Query, _, n int) string {
	return plural(n, "has a failing metric", "have a failing metric")
}

func (metricsAvailable) Apply(p *Pass, _ int, keep Bitmap) { keep.andNot(p.fleet.failing) }

func (metricsAvailable) Admits(p *Pass, _, row int, _ bool) bool { return !p.fleet.failing.Has(row) }

func (metricsAvailable) Reason(p *Pass, _, row int) string {
	for _, m := range p.fleet.rows[row].metrics {
		if s := p.fleet.metrics[m.id]; !s.usable && s.onFailure != api.FailureIgnore {
			return s.describe()
		}
	}
	return ""
}
