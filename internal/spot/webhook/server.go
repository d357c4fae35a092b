package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Limits on input.
const (
	// maxBody is the maximum size of a request: the API server accepts objects up to 3 MiB, and an
	// update contains the old object too.
	maxBody = 2*3<<20 + 256<<10
	// maxOfCluster limits the memory used by the requests of one cluster, so that it does not
	// affect others.
	maxOfCluster = 64 << 20
	// weightOfRequest is the minimum size that a request counts as. With maxOfCluster it limits the
	// number of concurrent requests of one cluster.
	weightOfRequest = 128 << 10

	headerTimeout = 5 * time.Second
	// bodyTimeout and answerTimeout are longer than any cluster waits.
	bodyTimeout   = 10 * time.Second
	answerTimeout = 15 * time.Second
	drainTime     = 5 * time.Second

	// assignWithin is how long a pod waits for its assignment, and answerMargin the part of the
	// cluster's timeout that is reserved for the response.
	assignWithin = 2 * time.Second
	answerMargin = 500 * time.Millisecond
)

// Options configures a server. Listener, TLS and Clusters are required.
type Options struct {
	// Listener is where clusters connect. Run closes it.
	Listener net.Listener
	// Connections limits the open connections. Default: a limit of this server's own.
	Connections *serve.Limit
	// TLS contains the certificate.
	TLS *tls.Config
	// Clusters returns a cluster by its name.
	Clusters func(name string) (Cluster, bool)
	// Tracer makes traces of the requests. Nil = there are none.
	Tracer *tracing.Tracer
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Recorder
	// Logger receives errors. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock of the metrics. Default: time.Now.
	Now func() time.Time
}

// Server answers the admission requests of all clusters.
type Server struct {
	options Options
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics
	handler http.Handler

	mu     sync.Mutex
	places map[string]*semaphore.Weighted // by cluster
}

// New returns a server; Run serves.
func New(options Options) (*Server, error) {
	switch {
	case options.Listener == nil, options.Clusters == nil:
		return nil, errors.New("webhook: Listener and Clusters are required")
	case options.TLS == nil:
		return nil, errors.New("webhook: TLS is required: API servers call webhooks over HTTPS only")
	}
	s := &Server{
		options: options, logger: options.Logger, now: options.Now,
		metrics: newMetrics(), places: map[string]*semaphore.Weighted{},
	}
	if s.options.Connections == nil {
		s.options.Connections = serve.NewLimit(serve.LimitOptions{})
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.handler = s.routes()
	return s, nil
}

// Run serves until ctx is done, and then finishes running requests. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	return serve.Run(ctx, serve.Options{
		Name: "webhook", Listener: s.options.Listener, Handler: s.handler, TLS: s.options.TLS, Connections: s.options.Connections,
		HeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: 16 << 10,
		DrainTime: drainTime, Logger: s.logger,
	})
}

// placesOf returns the limit on the requests of one cluster.
func (s *Server) placesOf(cluster string) *semaphore.Weighted {
	s.mu.Lock()
	defer s.mu.Unlock()
	places, ok := s.places[cluster]
	if !ok {
		places = semaphore.NewWeighted(maxOfCluster)
		s.places[cluster] = places
	}
	return places
}

// Forget drops everything about a deleted cluster, including its metrics.
func (s *Server) Forget(cluster string) {
	s.mu.Lock()
	delete(s.places, cluster)
	s.mu.Unlock()
	labels := prometheus.Labels{"cluster": cluster}
	s.metrics.seconds.DeletePartialMatch(labels)
	s.metrics.requests.DeletePartialMatch(labels)
}
