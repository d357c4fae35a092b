// Package prometheus reads metrics through the query API of Prometheus, or of
// anything that speaks it.
//
// A metric's name at the provider is any PromQL expression: a metric name, a
// selector or a computation. All expressions of a provider are asked for in one
// request, joined by `or` (see expression). Where an expression gives several
// series, the first in the order of their labels counts: the choice is the same
// every time, but a metric should rather say which one it means, for instance
// with max(...).
package prometheus

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "prometheus".
var Type = source.Type{
	Name: api.ProviderPrometheus,
	New: func(provider *api.MetricsProvider) (source.Source, error) {
		return open(provider, nil)
	},
}

// recheck is for how long a query that cannot be part of a batch is remembered.
// Its text will not get better, but the server may: a newer Prometheus knows
// more functions.
const recheck = 5 * time.Minute

// server is one Prometheus server, and what has been learned about queries.
type server struct {
	client  *http.Client
	api     promv1.API
	timeout api.Duration

	mu    sync.Mutex
	known map[string]knowledge // by query; plain queries are not in it
}

// knowledge is how a query that is not an instant vector has to be asked.
type knowledge struct {
	scalar bool // wants vector() around it
	// Until then the query is asked alone, or, where rejected is set, not at
	// all.
	until    time.Time
	rejected *source.Error
}

// open makes the source; roundTripper takes the place of the network in tests.
func open(provider *api.MetricsProvider, roundTripper http.RoundTripper) (*server, error) {
	spec := &provider.Spec
	if spec.Prometheus == nil {
		return nil, errors.New("spec.prometheus is required")
	}
	client, err := source.NewClient(spec, source.ClientOptions{Address: spec.Prometheus.URL, RoundTripper: roundTripper})
	if err != nil {
		return nil, err
	}
	c, err := promapi.NewClient(promapi.Config{Address: spec.Prometheus.URL, Client: client})
	if err != nil {
		return nil, fmt.Errorf("spec.prometheus.url: %w", err)
	}
	return &server{client: client, api: promv1.NewAPI(c), timeout: spec.Timeout, known: map[string]knowledge{}}, nil
}

// Close implements source.Source.
func (s *server) Close() { s.client.CloseIdleConnections() }

// recall returns what is known about a query at a moment.
func (s *server) recall(query string, now time.Time) knowledge {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[query]
	if ok && !k.scalar && !now.Before(k.until) {
		delete(s.known, query)
		return knowledge{}
	}
	return k
}

func (s *server) learn(query string, k knowledge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[query] = k
}

// forget drops what is known about queries that nobody asks any more, once
// there are many.
func (s *server) forget(asked []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) <= 2*len(asked)+1000 {
		return
	}
	keep := make(map[string]bool, len(asked))
	for _, query := range asked {
		keep[query] = true
	}
	maps.DeleteFunc(s.known, func(query string, _ knowledge) bool { return !keep[query] })
}
