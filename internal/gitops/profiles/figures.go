package profiles

import "github.com/prometheus/client_golang/prometheus"

// figures are the importer's metrics.
type figures struct {
	importer  *Importer
	writes    *prometheus.CounterVec
	profiles  *prometheus.Desc
	refused   *prometheus.Desc
	connected *prometheus.Desc
}

func newFigures(i *Importer) *figures {
	return &figures{
		importer: i,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_gitops_profile_writes_total", Help: "Writes of clusters that are made from ClusterProfiles, by result: written, deleted or failed (it is tried again).",
		}, []string{"result"}),
		profiles:  prometheus.NewDesc("scheduler_gitops_profiles", "ClusterProfiles in the Kubernetes hub.", nil, nil),
		refused:   prometheus.NewDesc("scheduler_gitops_profiles_refused", "ClusterProfiles that are no clusters: a cluster of the name was declared or made from another one, or it is invalid. The log says which.", nil, nil),
		connected: prometheus.NewDesc("scheduler_gitops_profiles_connected", "1 if ClusterProfiles are being watched, 0 if something prevents it.", nil, nil),
	}
}

// Collectors returns the metrics of the importer.
func (i *Importer) Collectors() []prometheus.Collector {
	return []prometheus.Collector{i.figures.writes, i.figures}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.profiles, f.refused, f.connected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value))
	}
	gauge(f.profiles, f.importer.table.Len())
	f.importer.mu.Lock()
	refused := len(f.importer.refused)
	f.importer.mu.Unlock()
	gauge(f.refused, refused)
	connected := 1
	if f.importer.Failure() != nil {
		connected = 0
	}
	gauge(f.connected, connected)
}
