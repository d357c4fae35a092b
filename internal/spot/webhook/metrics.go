package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result is the result of a request, for metrics.
type result string

const (
	resultPatched    result = "patched"
	resultUnchanged  result = "unchanged"
	resultDenied     result = "denied"
	resultTimeout    result = "timeout"
	resultUnread     result = "unread" // answered, but could not be decoded
	resultNotFound   result = "not_found"
	resultBadRequest result = "bad_request"
	resultTooLarge   result = "too_large"
	resultBusy       result = "busy"
	resultFailed     result = "failed"
)

// metrics are the metrics of the webhook.
type metrics struct {
	seconds  *prometheus.HistogramVec
	requests *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "scheduler_spot_webhook_duration_seconds", Help: "Time to answer an admission request.",
			// Every pod creation waits this long: fine resolution around the target of 10 ms.
			Buckets: []float64{.00025, .0005, .00075, .001, .0015, .002, .003, .004, .005, .006, .0075, .009, .01, .0125, .015, .02, .03, .05, .1, .25, .5, 1, 2},
		}, []string{"cluster", "path"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_spot_webhook_requests_total", Help: "Admission requests, by result.",
		}, []string{"cluster", "path", "result"}),
	}
}

func (m *metrics) observe(cluster, path string, r result, took time.Duration) {
	m.seconds.WithLabelValues(cluster, path).Observe(took.Seconds())
	m.requests.WithLabelValues(cluster, path, string(r)).Inc()
}

// Collectors returns the metrics of the webhook.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.seconds, s.metrics.requests}
}
