package notify

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// figures are the metrics. Their labels are the types of destinations, never names of notifications:
// there may be very many of these.
type figures struct {
	runner     *Runner
	deliveries *prometheus.CounterVec
	events     *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	missed     prometheus.Counter
	count      *prometheus.Desc
	behind     *prometheus.Desc
	aside      *prometheus.Desc
}

func newFigures(r *Runner) *figures {
	return &figures{
		runner: r,
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_notification_attempts_total", Help: "Attempts to deliver notifications, by type of destination and result: delivered, failed (it is tried again), refused (it is set aside, and tried again), given_up or gone (the destination answered 410).",
		}, []string{"destination", "result"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_notification_events_total", Help: "Events that were delivered, by type of destination.",
		}, []string{"destination"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "scheduler_notification_attempt_seconds", Help: "How long attempts to deliver notifications took, by type of destination.", Buckets: []float64{0.01, 0.1, 1, 10, 60},
		}, []string{"destination"}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_notification_missed_total", Help: "How often something could not be told, because the history no longer had it, or never had it.",
		}),
		count:  prometheus.NewDesc("scheduler_notifications", "Notifications by state: delivering, failing (the last attempt failed) or stopped (paused, or the destination answered 410).", []string{"state"}, nil),
		behind: prometheus.NewDesc("scheduler_notification_delay_seconds", "Age of the oldest event that a notification is trying to deliver, without what is set aside. 0 = there is none.", nil, nil),
		aside:  prometheus.NewDesc("scheduler_notification_set_aside", "Deliveries that are set aside, because the destination refuses them. What is told of the same objects waits.", nil, nil),
	}
}

// Collectors returns the metrics of the runner.
func (r *Runner) Collectors() []prometheus.Collector {
	return []prometheus.Collector{r.figures.deliveries, r.figures.events, r.figures.seconds, r.figures.missed, r.figures}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	out <- f.count
	out <- f.behind
	out <- f.aside
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	counts := map[string]int{"delivering": 0, "failing": 0, "stopped": 0}
	oldest, aside := 0.0, 0
	for _, s := range f.runner.all() {
		condition, since := s.standing()
		aside += len(s.setAside())
		switch condition {
		case api.ReasonDelivering, "":
			counts["delivering"]++
		case api.ReasonDeliveryFails:
			counts["failing"]++
		default:
			counts["stopped"]++
		}
		if !since.IsZero() {
			oldest = max(oldest, f.runner.options.Now().Sub(since).Seconds())
		}
	}
	for state, n := range counts {
		out <- prometheus.MustNewConstMetric(f.count, prometheus.GaugeValue, float64(n), state)
	}
	out <- prometheus.MustNewConstMetric(f.behind, prometheus.GaugeValue, oldest)
	out <- prometheus.MustNewConstMetric(f.aside, prometheus.GaugeValue, float64(aside))
}
