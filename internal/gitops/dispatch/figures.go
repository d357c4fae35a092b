package dispatch

import "github.com/prometheus/client_golang/prometheus"

// figures are the dispatcher's metrics.
type figures struct {
	dispatcher  *Dispatcher
	nominations *prometheus.CounterVec
	workloads   *prometheus.Desc
	failing     *prometheus.Desc
	kept        *prometheus.Desc
	connected   *prometheus.Desc
}

func newFigures(d *Dispatcher) *figures {
	return &figures{
		dispatcher: d,
		nominations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_gitops_nominations_total", Help: "Nominations of clusters for Workloads of Kueue, by result: nominated or failed (it is tried again).",
		}, []string{"result"}),
		workloads: prometheus.NewDesc("scheduler_gitops_workloads", "Workloads of Kueue that have quota and pending admission checks, but no cluster.", nil, nil),
		failing:   prometheus.NewDesc("scheduler_gitops_workloads_failing", "Workloads of Kueue for which the last nomination failed.", nil, nil),
		kept:      prometheus.NewDesc("scheduler_gitops_workloads_kept", "Workloads of Kueue whose nomination stays as it is because the server cannot say where they should go: there is no placement, its decision is not known, or no cluster fits or is one of MultiKueue's. The log says which.", nil, nil),
		connected: prometheus.NewDesc("scheduler_gitops_workloads_connected", "1 if the Workloads of Kueue are being watched, 0 if something prevents it.", nil, nil),
	}
}

// Collectors returns the metrics of the dispatcher.
func (d *Dispatcher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.figures.nominations, d.figures}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.workloads, f.failing, f.kept, f.connected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value))
	}
	d := f.dispatcher
	gauge(f.workloads, d.workloads.Len())
	_, failing := d.nominating.Count()
	gauge(f.failing, failing)
	d.mu.Lock()
	kept := len(d.kept)
	d.mu.Unlock()
	gauge(f.kept, kept)
	connected := 1
	if d.Failure() != nil {
		connected = 0
	}
	gauge(f.connected, connected)
}
