package runner

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// metrics are the runner's metrics.
type metrics struct {
	runner       *Runner
	replacements *prometheus.CounterVec
	workloads    *prometheus.Desc
	pods         *prometheus.Desc
	wanted       *prometheus.Desc
	ready        *prometheus.Desc
}

func newMetrics(r *Runner) *metrics {
	return &metrics{
		runner: r,
		replacements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_spot_replacements_total", Help: "Pods that were replaced, by reason.",
		}, []string{"cluster", "reason"}),
		workloads: prometheus.NewDesc("scheduler_spot_workloads", "Split workloads, by state.", []string{"cluster", "state"}, nil),
		pods:      prometheus.NewDesc("scheduler_spot_pods", "Pods of split workloads, by the node type they were created for; pods that fell back count as spot.", []string{"cluster", "type"}, nil),
		wanted:    prometheus.NewDesc("scheduler_spot_pods_wanted", "Pods that split workloads should have, by node type.", []string{"cluster", "type"}, nil),
		ready:     prometheus.NewDesc("scheduler_spot_ready", "1 if new pods of the cluster are split, 0 if something prevents it.", []string{"cluster"}, nil),
	}
}

func (f *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.replacements, f}
}

// Describe implements prometheus.Collector.
func (f *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.workloads, f.pods, f.wanted, f.ready} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *metrics) Collect(out chan<- prometheus.Metric) {
	f.runner.mu.Lock()
	agents := make([]*agent, 0, len(f.runner.agents))
	for _, a := range f.runner.agents {
		if a.target.splits() {
			agents = append(agents, a)
		}
	}
	f.runner.mu.Unlock()
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for _, a := range agents {
		ready := int64(0)
		if a.condition().Status == api.ConditionTrue {
			ready = 1
		}
		gauge(f.ready, ready, a.name)
		states := map[api.DistributionState]int64{}
		var live, wanted split.Split
		fallen := int64(0)
		for _, report := range a.reported() {
			d := &report.Distribution
			states[d.State]++
			if !isSplit(d) {
				continue
			}
			live.OnDemand, live.Spot = live.OnDemand+d.OnDemand, live.Spot+d.Spot
			wanted.OnDemand, wanted.Spot = wanted.OnDemand+d.TargetOnDemand, wanted.Spot+d.TargetSpot
			fallen += d.FallenBack
		}
		for state, n := range states {
			gauge(f.workloads, n, a.name, string(state))
		}
		for _, t := range []split.NodeType{split.OnDemand, split.Spot} {
			gauge(f.pods, live.Of(t), a.name, string(t))
			gauge(f.wanted, wanted.Of(t), a.name, string(t))
		}
		gauge(f.pods, fallen, a.name, "fallen-back")
	}
}

// clusterFigures are the counters of one cluster.
type clusterFigures struct{ replacements *prometheus.CounterVec }

func (f *metrics) of(cluster string) *clusterFigures {
	return &clusterFigures{f.replacements.MustCurryWith(prometheus.Labels{"cluster": cluster})}
}

func (f *clusterFigures) replaced(reason split.Reason) {
	f.replacements.WithLabelValues(string(reason)).Inc()
}

// forget drops the counters of a cluster.
func (f *metrics) forget(cluster string) {
	f.replacements.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}
