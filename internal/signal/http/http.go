// Package http reads metrics from JSON documents over HTTP: carbon-intensity services, price lists,
// machine inventories.
//
// The provider's url and value say where the value of a metric is, with placeholders for the metric
// and the cluster. If several metrics or clusters have their values in one document, it is fetched
// once per reading.
package http

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "http_json".
var Type = source.Type{
	Name:  api.ProviderHTTPJSON,
	Query: query,
	New: func(provider *api.MetricsProvider, network *addresspolicy.Policy) (source.Source, error) {
		return open(provider, network, nil)
	},
}

// query joins address and pointer. An address contains no space.
func query(spec *api.MetricsProviderSpec, metric string, cluster *api.Cluster) (string, error) {
	address, pointer, err := spec.HTTPJSON.Document(metric, cluster)
	return address + " " + pointer, err
}

// server is the server of the documents, and what has been learned about it.
type server struct {
	spec     *api.MetricsProviderSpec
	client   *http.Client
	patience source.Patience
}

// open creates the source; roundTripper replaces the network in tests.
func open(provider *api.MetricsProvider, network *addresspolicy.Policy, roundTripper http.RoundTripper) (*server, error) {
	spec := &provider.Spec
	if spec.HTTPJSON == nil {
		return nil, errors.New("http_json is required")
	}
	client, err := source.NewClient(spec, network, source.ClientOptions{
		Address: spec.HTTPJSON.URL, Headers: map[string]string{"Accept": "application/json"}, MaxConnsPerHost: source.MaxRequests, RoundTripper: roundTripper,
	})
	if err != nil {
		return nil, err
	}
	return &server{spec: spec, client: client}, nil
}

// Close implements source.Source.
func (s *server) Close() { s.client.CloseIdleConnections() }

// Read implements source.Source. Without queries no request is made: the values of the placeholders
// are unknown.
func (s *server) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	pointers := map[string][]string{} // by address
	var addresses []string
	for _, query := range queries {
		address, pointer, _ := strings.Cut(query, " ")
		if pointers[address] == nil {
			addresses = append(addresses, address)
		}
		pointers[address] = append(pointers[address], pointer)
	}
	// Documents may be slow, single values in them are not.
	search := source.NewSearch(ctx, string(s.spec.Timeout), &s.patience, addresses)
	found := make([]map[string]source.Reading, len(addresses))
	for i, address := range addresses {
		asked, slow := search.Sort(address)
		if !asked {
			continue
		}
		stage := source.Alone
		if slow {
			stage = source.Slow
		}
		search.Go(func(ctx context.Context) {
			err := search.Request(ctx, stage, func(ctx context.Context) (err error) {
				found[i], err = s.fetch(ctx, address, pointers[address])
				return err
			})
			var answer *source.Error
			switch {
			case err == nil:
				search.Set(address, source.Reading{})
			case errors.As(err, &answer):
				search.Set(address, source.Reading{Err: answer})
			case errors.Is(err, context.DeadlineExceeded):
				search.Late(address)
			default:
				search.Fail(i, source.Unreachable("%s", outbound.Describe(err)), address)
			}
		})
	}
	answers, err := search.Answers()
	out := make(map[string]source.Reading, len(queries))
	for i, address := range addresses {
		for _, pointer := range pointers[address] {
			reading, ok := found[i][pointer]
			if !ok {
				reading, ok = answers[address]
			}
			if ok {
				out[address+" "+pointer] = reading
			}
		}
	}
	return out, err
}

// fetch reads one document. A *source.Error says that the server responded, but not with a
// document.
func (s *server) fetch(ctx context.Context, address string, pointers []string) (map[string]source.Reading, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, source.Invalid("%q is not an address", shown(address))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusOK:
	case slices.Contains([]int{http.StatusNotFound, http.StatusGone}, resp.StatusCode):
		return nil, source.Invalid("there is no document %s: status %d", shown(address), resp.StatusCode)
	case slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, resp.StatusCode):
		return nil, source.Unreachable("%s answers with status %d: are the credentials in headers or bearer_token right?", shown(address), resp.StatusCode)
	default:
		return nil, source.Unreachable("%s answers with status %d", shown(address), resp.StatusCode)
	}
	document, err := values(resp.Body, pointers)
	switch {
	case errors.Is(err, errNotJSON):
		return nil, source.Invalid("%s is not a JSON document", shown(address))
	case errors.Is(err, outbound.ErrTooLarge):
		return nil, source.Invalid("the document %s has more than %d MiB", shown(address), source.MaxBody>>20)
	case err != nil:
		return nil, err
	}
	found := make(map[string]source.Reading, len(pointers))
	for _, pointer := range pointers {
		value, err := document.number(pointer)
		if err != nil {
			err = source.Invalid("%s (%s)", err, shown(address))
		}
		found[pointer] = source.Reading{Value: value, Err: err}
	}
	return found, nil
}

// shown returns an address without its query, which may contain a key.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	u.RawQuery = ""
	return u.Redacted()
}
