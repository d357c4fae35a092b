// Package prometheus reads metrics through the query API of Prometheus, or of compatible servers.
//
// A metric's name at the provider is any PromQL expression: a metric name, a selector or a
// computation. All expressions of a provider are sent in one request, joined by `or` (see
// expression). If an expression returns several series, the first by labels is used: the choice is
// deterministic, but a metric should specify which one it means, for instance with max(...).
package prometheus

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	promapi "github.com/prometheus/client_golang/api"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "prometheus".
var Type = source.Type{
	Name: api.ProviderPrometheus,
	New: func(provider *api.MetricsProvider, network *addresspolicy.Policy) (source.Source, error) {
		return open(provider, network, nil)
	},
}

// recheck is how long a query that cannot be part of a batch is remembered. Its text does not
// change, but the server may: a newer Prometheus knows more functions.
const recheck = 5 * time.Minute

// server is one Prometheus server, and what has been learned about queries.
type server struct {
	client  *http.Client
	api     promapi.Client
	timeout api.Duration

	known    source.Memory[knowledge] // ordinary queries are not in it
	patience source.Patience
}

// knowledge is how to send a query that is not an instant vector.
type knowledge struct {
	scalar bool // must be wrapped in vector()
	// Until then the query is sent alone or, if rejected is set, not at all.
	until    time.Time
	rejected *source.Error
}

// Over reports whether it must be checked again.
func (k knowledge) Over(now time.Time) bool { return !k.scalar && !now.Before(k.until) }

// open creates the source; roundTripper replaces the network in tests.
func open(provider *api.MetricsProvider, network *addresspolicy.Policy, roundTripper http.RoundTripper) (*server, error) {
	spec := &provider.Spec
	if spec.Prometheus == nil {
		return nil, errors.New("prometheus is required")
	}
	client, err := source.NewClient(spec, network, source.ClientOptions{Address: spec.Prometheus.URL, RoundTripper: roundTripper})
	if err != nil {
		return nil, err
	}
	c, err := promapi.NewClient(promapi.Config{Address: spec.Prometheus.URL, Client: client})
	if err != nil {
		return nil, fmt.Errorf("prometheus.url: %w", err)
	}
	return &server{client: client, api: c, timeout: spec.Timeout}, nil
}

// Close implements source.Source.
func (s *server) Close() { s.client.CloseIdleConnections() }
