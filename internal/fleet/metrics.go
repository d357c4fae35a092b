package fleet

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// fleetMetrics are the metrics of one fleet.
type fleetMetrics struct {
	relists    prometheus.Counter
	unreadable prometheus.Counter
}

func newFleetMetrics() *fleetMetrics {
	return &fleetMetrics{
		relists: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_fleet_relists_total",
			Help: "Times all objects had to be read from the store again.",
		}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_fleet_unreadable_objects_total",
			Help: "Stored values that could not be decoded.",
		}),
	}
}

func (m *fleetMetrics) collectors(f *Fleet) []prometheus.Collector {
	collectors := []prometheus.Collector{m.relists, m.unreadable,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_fleet_revision",
			Help: "Store revision of the snapshot in memory.",
		}, func() float64 { return float64(f.Snapshot().Revision()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_store_damaged_objects",
			Help: "Stored objects, tokens and other records that are damaged.",
		}, func() float64 { return float64(len(f.Snapshot().damaged)) }),
	}
	for _, info := range api.Kinds {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "scheduler_fleet_objects",
			Help:        "Objects by kind.",
			ConstLabels: prometheus.Labels{"kind": string(info.Kind)},
		}, func() float64 { return float64(f.Snapshot().Len(info.Kind)) }))
	}
	return collectors
}
