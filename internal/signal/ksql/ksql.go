// Package ksql reads metrics from a table of ksqlDB, the SQL interface of Kafka.
//
// A metric's name at the provider is what the comparison column of the table
// holds; the value is in the value column of the first row that has it. Several
// metrics are asked for in one statement, with IN; where a server does not take
// that, each has a statement of its own.
package ksql

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "kafka".
var Type = source.Type{
	Name: api.ProviderKafka,
	New: func(provider *api.MetricsProvider) (source.Source, error) {
		return open(provider, nil)
	},
}

const (
	// parallel is how many requests one reading has under way at a time.
	parallel = 4
	// recheck is after what time a server that did not take IN is asked again.
	recheck = 5 * time.Minute
)

// server is one ksqlDB server, and what has been learned about it.
type server struct {
	spec    *api.MetricsProviderSpec
	client  *http.Client
	address string

	mu     sync.Mutex
	stream bool      // has /query-stream in place of /query
	singly time.Time // until then it is not asked with IN
}

// open makes the source; roundTripper takes the place of the network in tests.
func open(provider *api.MetricsProvider, roundTripper http.RoundTripper) (*server, error) {
	spec := &provider.Spec
	if spec.Kafka == nil {
		return nil, errors.New("spec.kafka is required")
	}
	client, err := source.NewClient(spec, source.ClientOptions{Address: spec.Kafka.URL, MaxConnsPerHost: parallel, RoundTripper: roundTripper})
	if err != nil {
		return nil, err
	}
	return &server{spec: spec, client: client, address: strings.TrimSuffix(spec.Kafka.URL, "/")}, nil
}

// Close implements source.Source.
func (s *server) Close() { s.client.CloseIdleConnections() }

// reading is one call of Read.
type reading struct {
	server *server

	mu       sync.Mutex
	out      map[string]source.Reading
	failed   *source.Error // the server did not answer some request
	failedAt int           // number of that request
}

// Read implements source.Source.
func (s *server) Read(ctx context.Context, metrics []string) (map[string]source.Reading, error) {
	r := &reading{server: s, out: make(map[string]source.Reading, len(metrics))}
	if len(metrics) == 0 {
		if err := s.info(ctx); err != nil {
			return nil, s.unreachable(err)
		}
		return r.out, nil
	}
	batches := split(metrics, s.maxMetrics(time.Now()))
	var requests errgroup.Group
	requests.SetLimit(parallel)
	for i, batch := range batches {
		requests.Go(func() error { r.ask(ctx, i, batch); return nil })
	}
	_ = requests.Wait()
	if r.failed != nil {
		return r.out, r.failed
	}
	return r.out, nil
}

// ask asks for several metrics in one request.
func (r *reading) ask(ctx context.Context, number int, batch []string) {
	kafka := r.server.spec.Kafka
	found, err := r.server.query(ctx, statement(kafka, batch), batch)
	var refused *refusal
	if errors.As(err, &refused) && len(batch) > 1 {
		// Either IN or the statement as a whole: one metric alone will show.
		r.server.learnSingly(time.Now().Add(recheck))
		for _, metric := range batch {
			r.ask(ctx, number, []string{metric})
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, metric := range batch {
		column, ok := found[metric]
		switch {
		case ok:
			// The first row counts, whatever comes after it.
			r.out[metric] = value(column)
		case refused != nil:
			r.out[metric] = source.Reading{Err: source.Invalid("ksqlDB refuses the query: %s", refused)}
		case err != nil:
			e := r.server.unreachable(err)
			r.out[metric] = source.Reading{Err: e}
			if r.failed == nil || number < r.failedAt {
				r.failed, r.failedAt = e, number
			}
		default:
			r.out[metric] = source.Reading{Err: source.Invalid("%s has no row whose %s is %q", kafka.Table, kafka.ComparisonColumn, metric)}
		}
	}
}

// maxMetrics is how many metrics one statement asks for.
func (s *server) maxMetrics(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.singly) {
		return 1
	}
	return batchMetrics
}

func (s *server) learnSingly(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.singly = until
}

// value reads a column as a number. Texts that hold one count: columns are often
// declared as strings.
func value(column json.RawMessage) source.Reading {
	number, err := number(column)
	if err != nil {
		return source.Reading{Err: source.Invalid("the value is %s: it should be a number", err)}
	}
	return source.Reading{Value: number}
}

// unreachable describes why a request got no usable answer.
func (s *server) unreachable(err error) *source.Error {
	var status *statusError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return source.Unreachable("no answer within %s", string(s.spec.Timeout))
	case errors.Is(err, errNotKsql):
		return source.Unreachable("%s", errNotKsql)
	case errors.As(err, &status):
		return source.Unreachable("%s", status)
	}
	return source.Unreachable("%s", outbound.Describe(err))
}
