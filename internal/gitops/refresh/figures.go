package refresh

import "github.com/prometheus/client_golang/prometheus"

// figures are the refresher's metrics.
type figures struct {
	refresher *Refresher
	refreshes *prometheus.CounterVec
	objects   *prometheus.Desc
	waiting   *prometheus.Desc
	connected *prometheus.Desc
}

func newFigures() *figures {
	return &figures{
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_gitops_refreshes_total", Help: "Requests to set the annotation that makes a GitOps controller ask again, by result: told, failed (it is tried again) or gone (the object was deleted).",
		}, []string{"controller", "result"}),
		objects:   prometheus.NewDesc("scheduler_gitops_objects", "Objects of GitOps controllers that ask for decisions.", []string{"controller"}, nil),
		waiting:   prometheus.NewDesc("scheduler_gitops_refreshes_waiting", "Objects of GitOps controllers that are being told, or were just told, that a decision has changed.", nil, nil),
		connected: prometheus.NewDesc("scheduler_gitops_connected", "1 if the objects of GitOps controllers are being watched, 0 if something prevents it.", nil, nil),
	}
}

func (f *figures) count(c controller, result string) {
	f.refreshes.WithLabelValues(string(c), result).Inc()
}

// Collectors returns the metrics of the refresher.
func (r *Refresher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{r.figures.refreshes, r.figures}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.objects, f.waiting, f.connected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	r := f.refresher
	counts := map[controller]int{}
	for n := range r.index.Load().names {
		counts[n.controller]++
	}
	for c := range resources {
		out <- prometheus.MustNewConstMetric(f.objects, prometheus.GaugeValue, float64(counts[c]), string(c))
	}
	waiting, _ := r.telling.Count()
	out <- prometheus.MustNewConstMetric(f.waiting, prometheus.GaugeValue, float64(waiting))
	connected := 1.0
	if r.Failure() != nil {
		connected = 0
	}
	out <- prometheus.MustNewConstMetric(f.connected, prometheus.GaugeValue, connected)
}
