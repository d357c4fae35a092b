// Package ksql reads metrics from a table of ksqlDB, the SQL interface of Kafka.
//
// A metric's name at the provider is matched with the comparison column of the table; the value is
// in the value column of the first matching row. Several metrics are queried with one statement,
// using IN; if a server does not support that, each has its own statement.
package ksql

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// Type is the provider type "kafka".
var Type = source.Type{
	Name: api.ProviderKafka,
	New: func(provider *api.MetricsProvider, network *addresspolicy.Policy) (source.Source, error) {
		return open(provider, network, nil)
	},
}

// recheck is how long IN is not used with a server that did not support it.
const recheck = 5 * time.Minute

// server is one ksqlDB server, and what has been learned about it.
type server struct {
	spec    *api.MetricsProviderSpec
	client  *http.Client
	address string

	mu     sync.Mutex
	stream bool      // has /query-stream instead of /query
	singly time.Time // until then, IN is not used

	patience source.Patience
}

// open creates the source; roundTripper replaces the network in tests.
func open(provider *api.MetricsProvider, network *addresspolicy.Policy, roundTripper http.RoundTripper) (*server, error) {
	spec := &provider.Spec
	if spec.Kafka == nil {
		return nil, errors.New("kafka is required")
	}
	client, err := source.NewClient(spec, network, source.ClientOptions{Address: spec.Kafka.URL, MaxConnsPerHost: source.MaxRequests, RoundTripper: roundTripper})
	if err != nil {
		return nil, err
	}
	return &server{spec: spec, client: client, address: strings.TrimSuffix(spec.Kafka.URL, "/")}, nil
}

// Close implements source.Source.
func (s *server) Close() { s.client.CloseIdleConnections() }

// reading is one call of Read.
type reading struct {
	*source.Search
	server *server
}

// Read implements source.Source.
func (s *server) Read(ctx context.Context, metrics []string) (map[string]source.Reading, error) {
	r := &reading{Search: source.NewSearch(ctx, string(s.spec.Timeout), &s.patience, metrics), server: s}
	var together, slow []string
	for _, metric := range metrics {
		switch asked, isSlow := r.Sort(metric); {
		case !asked:
		case isSlow:
			slow = append(slow, metric)
		default:
			together = append(together, metric)
		}
	}
	if len(together) == 0 {
		r.Go(func(ctx context.Context) {
			if err := r.info(ctx, source.Alone); err != nil {
				r.Fail(-1, s.unreachable(err))
				return
			}
			r.Answered()
		})
	}
	for i, batch := range split(together, s.maxMetrics(time.Now())) {
		r.Go(func(ctx context.Context) { r.ask(ctx, source.StageOf(len(batch)), i, batch) })
	}
	for i, metric := range slow {
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Slow, len(together)+i, []string{metric}) })
	}
	return r.Answers()
}

// info checks whether the server responds.
func (r *reading) info(ctx context.Context, stage source.Stage) error {
	return r.Request(ctx, stage, r.server.info)
}

// ask queries several metrics in one request. If it times out or the response cannot be read, the
// missing ones are bisected until the metric at fault is alone.
func (r *reading) ask(ctx context.Context, stage source.Stage, number int, batch []string) {
	kafka := r.server.spec.Kafka
	var found map[string]json.RawMessage
	err := r.Request(ctx, stage, func(ctx context.Context) (err error) {
		found, err = r.server.query(ctx, statement(kafka, batch), batch)
		return err
	})
	var missing []string
	for _, metric := range batch {
		if column, ok := found[metric]; ok {
			// The first row counts, whatever comes after it.
			r.Set(metric, value(column))
		} else {
			missing = append(missing, metric)
		}
	}
	if len(missing) == 0 {
		return
	}
	var refused *refusal
	errors.As(err, &refused)
	late := errors.Is(err, context.DeadlineExceeded)
	garbled := errors.Is(err, errNotKsql) && (stage == source.Part || len(batch) > 1 && r.info(ctx, stage) == nil)
	switch {
	case err == nil:
		for _, metric := range missing {
			r.Set(metric, source.Reading{Err: source.Invalid("%s has no row whose %s is %q", kafka.Table, kafka.ComparisonColumn, metric)})
		}
	case refused != nil && len(batch) > 1:
		// Either IN or the statement itself is rejected: querying one metric alone shows which.
		r.server.learnSingly(time.Now().Add(recheck))
		for _, metric := range missing {
			r.ask(ctx, source.Part, number, []string{metric})
		}
	case refused != nil:
		r.Set(batch[0], source.Reading{Err: source.Invalid("ksqlDB rejects the query").Said(refused.message)})
	case garbled && len(batch) == 1:
		r.Set(batch[0], source.Reading{Err: source.Invalid("the result of this query cannot be read: it should be one number")})
	case late && (len(missing) == 1 && len(batch) == 1 || r.Over()):
		r.Late(missing...)
	case (late || garbled) && r.MayDivide():
		half := len(missing) / 2
		for _, part := range [][]string{missing[:half], missing[half:]} {
			if len(part) > 0 {
				r.Go(func(ctx context.Context) { r.ask(ctx, source.Part, number, part) })
			}
		}
	default:
		r.Fail(number, r.server.unreachable(err), missing...)
	}
}

// maxMetrics returns how many metrics one statement may query.
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

// value converts a column to a number. Strings that contain one are accepted, because columns are
// often declared as strings.
func value(column json.RawMessage) source.Reading {
	number, err := number(column)
	if err != nil {
		return source.Reading{Err: source.Invalid("the value is %s: it should be a number", err)}
	}
	return source.Reading{Value: number}
}

// unreachable describes why a request got no usable response.
func (s *server) unreachable(err error) *source.Error {
	var status *statusError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return source.Unreachable("no response within %s", string(s.spec.Timeout))
	case errors.Is(err, errNotKsql):
		return source.Unreachable("%s", errNotKsql)
	case errors.As(err, &status):
		return source.Unreachable("%s", status).Said(status.message)
	}
	return source.Unreachable("%s", outbound.Describe(err))
}
