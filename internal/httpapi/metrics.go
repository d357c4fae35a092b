package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/exemplar"
)

// httpMetrics are the metrics of the API.
type httpMetrics struct {
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	watchers     prometheus.Gauge
	watchersCut  prometheus.Counter
	authFailures prometheus.Counter
	panics       prometheus.Counter

	// known has the series of requests that there were, by what their labels say: to look
	// them up by the labels takes longer.
	known sync.Map // of answered to *series
}

// answered is what the labels of requests say.
type answered struct {
	route, method string
	status        int
}

// series are those that a request counts in.
type series struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

func newHTTPMetrics() *httpMetrics {
	return &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "scheduler_http_request_seconds", Help: "Time to answer a request, including waits.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_http_requests_in_flight", Help: "Requests being answered.",
		}),
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_http_watchers", Help: "Open watch streams.",
		}),
		watchersCut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_http_watchers_too_slow_total", Help: "Watch streams closed because their readers were too far behind.",
		}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_http_auth_failures_total", Help: "Requests without a valid token.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_http_panics_total", Help: "Requests that ended in a panic.",
		}),
	}
}

// Collectors returns the metrics of the server.
func (s *Server) Collectors() []prometheus.Collector {
	m := s.metrics
	return []prometheus.Collector{m.requests, m.seconds, m.inFlight, m.watchers, m.watchersCut, m.authFailures, m.panics}
}

func (m *httpMetrics) observe(ctx context.Context, route, method string, status int, took time.Duration) {
	labels := answered{route, method, status}
	known, ok := m.known.Load(labels)
	if !ok {
		known, _ = m.known.LoadOrStore(labels, &series{m.requests.WithLabelValues(route, method, strconv.Itoa(status)), m.seconds.WithLabelValues(route, method)})
	}
	if s, ok := known.(*series); ok { // nothing else is stored
		s.requests.Inc()
		exemplar.Observe(ctx, s.seconds, took)
	}
}

// metricsPage serves the metrics of all parts of the server to those who may read objects.
type metricsPage struct {
	api      *operation.API
	fleet    *fleet.Fleet
	rights   auth.Rights
	gatherer prometheus.Gatherer
}

// handler serves /metrics.
func (m *metricsPage) handler() http.Handler {
	options := promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: metricsReaders, Timeout: 30 * time.Second,
		EnableOpenMetrics: true, // for clients that ask for it: only that format has exemplars
	}
	show := promhttp.HandlerFor(m.gatherer, options)
	bound := make(chan struct{}, metricsReaders) // a reader with restricted access gets a handler of their own
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := auth.Of(r.Context()).MayReadSomething(); err != nil {
			problem.Write(w, m.api.Problem(r.Context(), err))
			return
		}
		who := auth.Of(r.Context())
		if who.ReadsAll() {
			show.ServeHTTP(w, r)
			return
		}
		select {
		case bound <- struct{}{}:
			defer func() { <-bound }()
			promhttp.HandlerFor(m.visibleMetrics(who), options).ServeHTTP(w, r)
		default:
			problem.Write(w, problem.Unavailable("too many concurrent requests for metrics: repeat the request"))
		}
	})
}

// metricsReaders is the number of concurrent requests for metrics.
const metricsReaders = 4

// visibleMetrics returns a gatherer of the series that a reader may see: labels name clusters,
// clouds, metrics providers and namespaced objects.
func (m *metricsPage) visibleMetrics(who auth.Identity) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := m.gatherer.Gather()
		out := make([]*dto.MetricFamily, 0, len(families))
		for _, family := range families {
			visible := slices.DeleteFunc(slices.Clone(family.GetMetric()), func(series *dto.Metric) bool { return !m.seesSeries(who, series) })
			if len(visible) > 0 {
				out = append(out, &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit, Metric: visible})
			}
		}
		return out, err
	})
}

// seesSeries reports whether a reader may see the objects named in the labels of a series. The
// owners of clusters and clouds that no longer exist are unknown.
func (m *metricsPage) seesSeries(who auth.Identity, series *dto.Metric) bool {
	labels := map[string]string{}
	for _, label := range series.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	named := map[api.Kind]string{api.KindCluster: labels["cluster"], api.KindCloud: labels["cloud"]}
	if kind := api.Kind(labels["kind"]); kind == api.KindCluster || kind == api.KindCloud {
		named[kind] = cmp.Or(named[kind], labels["name"])
	}
	for kind, name := range named {
		if name == "" {
			continue
		}
		entry := m.fleet.Snapshot().Get(api.Key{Kind: kind, Name: name})
		if entry == nil || !m.rights.Reads(who, entry.Object) {
			return false
		}
	}
	provider, _, _ := strings.Cut(qualified(labels["provider"]), "/")
	return who.Reads(api.Kind(labels["kind"]), auth.OwnersIn(labels["namespace"])...) &&
		who.Reads(api.KindMetricsProvider, auth.OwnersIn(provider)...)
}

// qualified returns the path of a namespace and a name, or "" if there is no namespace.
func qualified(path string) string {
	if !strings.Contains(path, "/") {
		return ""
	}
	return path
}
