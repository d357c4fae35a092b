// Package influx reads metrics from InfluxDB: from 2.x, and from 1.8 with Flux enabled, in Flux
// through the official client; from other servers of 1.x in InfluxQL.
//
// A metric's name at the provider is a measurement, optionally with a field and tags, such as
// heat_demand.value{zone="a"} (see selector). Its value is the last one of the last hour. If
// several series have one, the first by tags and then by field is used: the choice is
// deterministic, but a metric should specify which one it means.
package influx

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "influx".
var Type = source.Type{
	Name: api.ProviderInflux,
	New: func(provider *api.MetricsProvider, network *addresspolicy.Policy) (source.Source, error) {
		return open(provider, network, nil)
	},
}

// language is one of the two query languages.
type language interface {
	// ask queries the last value of every series that matches one of the terms.
	ask(ctx context.Context, batch []term, take func(*series)) error
	// ping checks whether queries about the bucket are answered at all.
	ping(ctx context.Context) error
}

// server is one InfluxDB server, and what has been learned about it.
type server struct {
	spec    *api.MetricsProviderSpec
	clients []*http.Client
	address string
	flux    *flux
	ql      *influxQL

	mu     sync.Mutex
	usesQL bool // has no Flux

	known    source.Memory[knowledge]
	patience source.Patience
}

// open creates the source; roundTripper replaces the network in tests.
func open(provider *api.MetricsProvider, network *addresspolicy.Policy, roundTripper http.RoundTripper) (*server, error) {
	spec := &provider.Spec
	if spec.Influx == nil {
		return nil, errors.New("influx is required")
	}
	address := strings.TrimSuffix(spec.Influx.URL, "/")
	token := spec.Influx.Token.Reveal()
	s := &server{spec: spec, address: address}
	// InfluxQL is older than tokens: for it, the token contains user and password.
	for _, authorization := range []string{tokenHeader(token), passwordHeader(token)} {
		options := source.ClientOptions{Address: address, RoundTripper: roundTripper, MaxConnsPerHost: source.MaxRequests}
		if token != "" {
			options.Headers = map[string]string{"Authorization": authorization}
		}
		client, err := source.NewClient(spec, network, options)
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, client)
	}
	s.flux = newFlux(s.clients[0], address, spec.Influx.Org, spec.Influx.Bucket)
	s.ql = newInfluxQL(s.clients[1], address, spec.Influx.Bucket)
	return s, nil
}

func tokenHeader(token string) string { return "Token " + token }

func passwordHeader(token string) string {
	user, password, found := strings.Cut(token, ":")
	if !found {
		return tokenHeader(token)
	}
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(user, password)
	return req.Header.Get("Authorization")
}

// Close implements source.Source.
func (s *server) Close() {
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}

// use calls f with the language that the server supports: Flux until the server turns out not to
// have it, and again after a failure, because it may have been upgraded.
func (s *server) use(ctx context.Context, f func(language) error) error {
	s.mu.Lock()
	usesQL := s.usesQL
	s.mu.Unlock()
	if !usesQL {
		err := f(s.flux)
		if !mayLackFlux(err) {
			return err
		}
		version, pingErr := s.version(ctx)
		if pingErr != nil {
			return pingErr
		}
		if !strings.HasPrefix(version, "1.") {
			return err
		}
	}
	err := f(s.ql)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usesQL = err == nil || isRefusal(err)
	return err
}

// mayLackFlux recognizes responses of 1.x servers to Flux: without the API, or with Flux disabled.
func mayLackFlux(err error) bool {
	var e *statusError
	return errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed ||
		e.status == http.StatusForbidden && strings.Contains(strings.ToLower(e.message), "flux"))
}

// version returns the server's version, such as "1.6.7" or "v2.7.12".
func (s *server) version(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/ping", nil)
	if err != nil {
		return "", err
	}
	resp, err := s.clients[1].Do(req)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	return strings.TrimPrefix(resp.Header.Get("X-Influxdb-Version"), "v"), nil
}

// unreachable describes why a request got no usable response.
func (s *server) unreachable(err error) *source.Error {
	var status *statusError
	var refused *refusal
	var known *source.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return source.Unreachable("no response within %s", string(s.spec.Timeout))
	case errors.Is(err, errNotInflux):
		return source.Unreachable("%s", errNotInflux)
	case errors.As(err, &status) && status.status == http.StatusNotFound && status.message == "":
		return source.Unreachable("%s: does the url point at InfluxDB?", status)
	case errors.As(err, &status):
		return source.Unreachable("%s", status).Said(status.message)
	case errors.As(err, &refused):
		return source.Unreachable("%s", refused).Said(refused.said)
	}
	return source.Unreachable("%s", outbound.Describe(err))
}
