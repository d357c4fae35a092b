package prometheus

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

const (
	// parallel is how many requests one reading has under way at a time.
	parallel = 4
	// searches is how many requests one reading spends on finding out which
	// queries of a failed batch are to blame. What it learns stays learned, so
	// the next reading goes on from there.
	searches = 200
)

// reading is one call of Read.
type reading struct {
	server  *server
	queries []string

	mu       sync.Mutex
	out      map[string]source.Reading
	searches int
	failed   *source.Error // the provider did not answer some request
	failedAt int           // number of the first query of that request
}

// Read implements source.Source.
func (s *server) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	r := &reading{server: s, queries: queries, out: make(map[string]source.Reading, len(queries)), searches: searches}
	s.known.Forget(queries)
	now := time.Now()
	var together, alone []term
	for i, query := range queries {
		k := s.known.Recall(query, now)
		t := term{number: i, query: query, scalar: k.scalar}
		switch {
		case k.rejected != nil:
			r.out[query] = source.Reading{Err: k.rejected}
		case !k.until.IsZero() || !enclosed(query):
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	var requests errgroup.Group
	requests.SetLimit(parallel)
	if len(together) == 0 && len(alone) == 0 {
		requests.Go(func() error { r.ping(ctx); return nil })
	}
	for _, batch := range split(together) {
		requests.Go(func() error { r.ask(ctx, batch); return nil })
	}
	for _, t := range alone {
		requests.Go(func() error { r.askAlone(ctx, t); return nil })
	}
	_ = requests.Wait()
	if r.failed != nil {
		return r.out, r.failed
	}
	return r.out, nil
}

// ping finds out whether the server answers at all.
func (r *reading) ping(ctx context.Context) {
	if _, _, _, err := r.query(ctx, "vector(1)"); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = r.server.unreachable(err)
	}
}

// ask asks for several queries in one request. Where Prometheus refuses it, the
// batch is halved until the query to blame stands alone.
func (r *reading) ask(ctx context.Context, batch []term) {
	value, refused, tooLarge, err := r.query(ctx, expression(batch))
	switch {
	case len(batch) == 1 && (err == nil || isTypeError(err)):
		r.takeOne(ctx, batch[0], value)
	case err == nil:
		r.takeBatch(batch, value)
	case refused == nil && !tooLarge:
		r.fail(batch, r.server.unreachable(err))
	case len(batch) == 1:
		r.askAlone(ctx, batch[0])
	case !r.maySearch():
		for _, t := range batch {
			r.set(t.query, source.Reading{Err: source.Invalid("not read: Prometheus refuses so many expressions that the search for them goes on with the next reading")})
		}
	default:
		half := len(batch) / 2
		r.ask(ctx, batch[:half])
		r.ask(ctx, batch[half:])
	}
}

// askAlone asks for one query as the user wrote it, and learns why it could not
// be part of a batch.
func (r *reading) askAlone(ctx context.Context, t term) {
	value, refused, tooLarge, err := r.query(ctx, t.query)
	until := time.Now().Add(recheck)
	reject := func(e *source.Error) {
		r.server.known.Learn(t.query, knowledge{until: until, rejected: e})
		r.set(t.query, source.Reading{Err: e})
	}
	switch {
	case tooLarge:
		reject(source.Invalid("the answer is larger than %d MiB: the expression should give one number", source.MaxBody>>20))
		return
	case refused != nil && refused.Type == promv1.ErrBadData:
		reject(source.Invalid("Prometheus rejects the expression: %s", refused.Msg))
		return
	case refused != nil:
		r.server.known.Learn(t.query, knowledge{until: until})
		r.set(t.query, source.Reading{Err: source.Invalid("Prometheus cannot evaluate the expression: %s", refused.Msg)})
		return
	case isTypeError(err):
		reject(source.Invalid("the expression gives a text or the like: it should give one number, as an instant vector or a scalar"))
		return
	case err != nil:
		r.fail([]term{t}, r.server.unreachable(err))
		return
	}
	switch v := value.(type) {
	case model.Vector:
		r.server.known.Learn(t.query, knowledge{until: until})
		r.set(t.query, first(v))
	case *model.Scalar:
		// A query whose brackets do not match only looks like a number here.
		if enclosed(t.query) {
			r.server.known.Learn(t.query, knowledge{scalar: true})
		}
		r.set(t.query, source.Reading{Value: float64(v.Value)})
	default:
		reject(source.Invalid("the expression gives a range of values: it should give one number, as an instant vector or a scalar"))
	}
}

// isTypeError recognizes the client library's complaint about a result type it
// does not know; text is one.
func isTypeError(err error) bool {
	var e *promv1.Error
	return errors.As(err, &e) && e.Type == promv1.ErrBadResponse && strings.HasPrefix(e.Msg, "unexpected value type")
}

// query sends one request. It tells apart what Prometheus says about the
// expression (refused), an answer above the limit, and everything else.
func (r *reading) query(ctx context.Context, expression string) (value model.Value, refused *promv1.Error, tooLarge bool, err error) {
	value, _, _, err = r.server.api.Query(ctx, expression, time.Time{})
	if err == nil && value == nil {
		err = &promv1.Error{Type: promv1.ErrBadResponse, Msg: "no result"}
	}
	var e *promv1.Error
	if errors.As(err, &e) && (e.Type == promv1.ErrBadData || e.Type == promv1.ErrExec) {
		refused = e
	}
	return value, refused, errors.Is(err, outbound.ErrTooLarge), err
}

// takeOne reads the answer to a query that was asked as the user wrote it.
func (r *reading) takeOne(ctx context.Context, t term, value model.Value) {
	switch v := value.(type) {
	case model.Vector:
		r.set(t.query, first(v))
	case *model.Scalar:
		r.server.known.Learn(t.query, knowledge{scalar: true})
		r.set(t.query, source.Reading{Value: float64(v.Value)})
	default:
		r.askAlone(ctx, t) // says what is wrong with it
	}
}

// takeBatch hands the series of a batch to their queries.
func (r *reading) takeBatch(batch []term, value model.Value) {
	vector, ok := value.(model.Vector)
	if !ok {
		r.fail(batch, source.Unreachable("the answer is not the kind of result that the query API gives"))
		return
	}
	series := make(map[int]model.Vector, len(batch))
	for _, sample := range vector {
		if sample == nil {
			continue
		}
		number, err := strconv.Atoi(string(sample.Metric[mark]))
		if err != nil {
			continue
		}
		delete(sample.Metric, mark)
		series[number] = append(series[number], sample)
	}
	for _, t := range batch {
		r.set(t.query, first(series[t.number]))
	}
}

// first picks the sample that counts among several: the first in the order of
// their labels.
func first(vector model.Vector) source.Reading {
	var chosen *model.Sample
	var labels string
	for _, sample := range vector {
		switch {
		case sample == nil:
		case chosen == nil:
			chosen = sample
		default:
			if labels == "" {
				labels = chosen.Metric.String()
			}
			if other := sample.Metric.String(); other < labels {
				chosen, labels = sample, other
			}
		}
	}
	switch {
	case chosen == nil:
		return source.Reading{Err: source.Invalid("the expression has no result: no series matches it at present")}
	case chosen.Histogram != nil:
		return source.Reading{Err: source.Invalid("the expression gives a histogram: it should give one number, for instance with histogram_quantile()")}
	}
	return source.Reading{Value: float64(chosen.Value)}
}

func (r *reading) set(query string, reading source.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out[query] = reading
}

// fail gives the queries of a request that got no usable answer the reason.
func (r *reading) fail(batch []term, e *source.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Of several failed requests always the same one speaks for the provider.
	if r.failed == nil || batch[0].number < r.failedAt {
		r.failed, r.failedAt = e, batch[0].number
	}
	for _, t := range batch {
		r.out[t.query] = source.Reading{Err: e}
	}
}

func (r *reading) maySearch() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.searches--
	return r.searches >= 0
}

// unreachable describes why a request got no usable answer.
func (s *server) unreachable(err error) *source.Error {
	var e *promv1.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return source.Unreachable("no answer within %s", string(s.timeout))
	case !errors.As(err, &e):
		return source.Unreachable("%s", outbound.Describe(err))
	case e.Type == promv1.ErrBadResponse:
		return source.Unreachable("the answer is not one of a Prometheus query API: does the url point at Prometheus?")
	case e.Type == promv1.ErrClient:
		return source.Unreachable("Prometheus answers with a %s: are url and credentials right?", e.Msg)
	}
	return source.Unreachable("Prometheus answers with a %s", e.Msg)
}
