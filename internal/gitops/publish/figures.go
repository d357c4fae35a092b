package publish

import "github.com/prometheus/client_golang/prometheus"

// figures are the publisher's metrics.
type figures struct {
	publisher *Publisher
	writes    *prometheus.CounterVec
	objects   *prometheus.Desc
	waiting   *prometheus.Desc
	failing   *prometheus.Desc
	kept      *prometheus.Desc
	connected *prometheus.Desc
}

func newFigures(p *Publisher) *figures {
	return &figures{
		publisher: p,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_gitops_decision_writes_total", Help: "Writes of PlacementDecisions to the Kubernetes hub, by result: created, written, deleted or failed (it is tried again).",
		}, []string{"api", "result"}),
		objects:   prometheus.NewDesc("scheduler_gitops_decision_objects", "PlacementDecisions in the Kubernetes hub that this store has made.", []string{"api"}, nil),
		waiting:   prometheus.NewDesc("scheduler_gitops_decisions_waiting", "Decisions that are being written to the Kubernetes hub, or just were.", nil, nil),
		failing:   prometheus.NewDesc("scheduler_gitops_decisions_failing", "Decisions whose last write to the Kubernetes hub failed.", nil, nil),
		kept:      prometheus.NewDesc("scheduler_gitops_decisions_kept", "Decisions in the Kubernetes hub that stay as they are because the server cannot say where the placement should be: no cluster fits, or it has not been decided.", nil, nil),
		connected: prometheus.NewDesc("scheduler_gitops_decisions_connected", "1 if the PlacementDecisions in the Kubernetes hub are being watched, 0 if something prevents it.", nil, nil),
	}
}

func (f *figures) count(name API, result string) {
	f.writes.WithLabelValues(string(name), result).Inc()
}

// Collectors returns the metrics of the publisher.
func (p *Publisher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.figures.writes, p.figures}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.objects, f.waiting, f.failing, f.kept, f.connected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	p := f.publisher
	for name, table := range p.objects {
		gauge(f.objects, table.Len(), string(name))
	}
	waiting, failing := p.writing.Count()
	gauge(f.waiting, waiting)
	gauge(f.failing, failing)
	p.mu.Lock()
	kept := len(p.kept)
	p.mu.Unlock()
	gauge(f.kept, kept)
	connected := 1
	if p.Failure() != nil {
		connected = 0
	}
	gauge(f.connected, connected)
}
