package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// httpMetrics counts what the server does.
type httpMetrics struct {
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	watchers     prometheus.Gauge
	authFailures prometheus.Counter
	panics       prometheus.Counter
}

func newHTTPMetrics() *httpMetrics {
	return &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "scheduler_http_request_seconds", Help: "Time to answer a request, waits included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_http_requests_in_flight", Help: "Requests being answered.",
		}),
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_http_watchers", Help: "Open watch streams.",
		}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_http_auth_failures_total", Help: "Requests without a valid token.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_http_panics_total", Help: "Requests that ended in a panic.",
		}),
	}
}

// Collectors are the metrics of the server.
func (s *Server) Collectors() []prometheus.Collector {
	m := s.metrics
	return []prometheus.Collector{m.requests, m.seconds, m.inFlight, m.watchers, m.authFailures, m.panics}
}

func (m *httpMetrics) observe(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route, method).Observe(took.Seconds())
}

// metricsHandler shows the gatherer's metrics to whoever may read objects.
func (s *Server) metricsHandler() http.Handler {
	show := promhttp.HandlerFor(s.options.Gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 30 * time.Second,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := identityOf(r.Context()).mayReadNamespace(""); err != nil {
			writeProblem(w, s.answer(r.Context(), err))
			return
		}
		show.ServeHTTP(w, r)
	})
}
