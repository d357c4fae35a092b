package prometheus

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// reading is one call of Read.
type reading struct {
	*source.Search
	server *server
}

// Read implements source.Source.
func (s *server) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	r := &reading{Search: source.NewSearch(ctx, string(s.timeout), &s.patience, queries), server: s}
	s.known.Forget(queries)
	now := time.Now()
	var together, alone, slow []term
	for i, query := range queries {
		k := s.known.Recall(query, now)
		t := term{number: i, query: query, scalar: k.scalar}
		if k.rejected != nil {
			r.Known(query, k.rejected)
			continue
		}
		switch asked, isSlow := r.Sort(query); {
		case !asked:
		case isSlow:
			slow = append(slow, t)
		case !k.until.IsZero() || !enclosed(query):
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	if len(together)+len(alone) == 0 {
		// Check whether the server responds.
		r.Go(r.ping)
	}
	for _, batch := range split(together) {
		r.Go(func(ctx context.Context) { r.ask(ctx, source.StageOf(len(batch)), batch) })
	}
	for _, t := range alone {
		r.Go(func(ctx context.Context) { r.askAlone(ctx, source.Alone, t) })
	}
	for _, t := range slow {
		r.Go(func(ctx context.Context) { r.askAlone(ctx, source.Slow, t) })
	}
	return r.Answers()
}

// ping checks whether the server responds.
func (r *reading) ping(ctx context.Context) {
	if a := r.query(ctx, source.Alone, "vector(1)"); a.err != nil {
		r.Fail(-1, r.server.unreachable(a.err))
	} else {
		r.Answered()
	}
}

// ask sends several queries in one request. If Prometheus rejects it or it times out, the batch is
// bisected until the query at fault is alone.
func (r *reading) ask(ctx context.Context, stage source.Stage, batch []term) {
	a := r.query(ctx, stage, expression(batch))
	switch {
	case len(batch) == 1 && (a.err == nil || isTypeError(a.err)):
		r.takeOne(ctx, stage, batch[0], a)
	case a.err == nil:
		r.takeBatch(batch, a)
	case a.late && (len(batch) == 1 || r.Over()):
		r.Late(queriesOf(batch)...)
	case a.refused == nil && !a.tooLarge && !a.late:
		r.Fail(batch[0].number, r.server.unreachable(a.err), queriesOf(batch)...)
	case len(batch) == 1:
		r.askAlone(ctx, stage, batch[0])
	case !r.MayDivide():
		if a.late {
			r.Late(queriesOf(batch)...)
			return
		}
		for _, t := range batch {
			r.Known(t.query, source.Invalid("not read yet: Prometheus rejects many expressions, and finding them continues with the next reading"))
		}
	default:
		half := len(batch) / 2
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Part, batch[:half]) })
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Part, batch[half:]) })
	}
}

func queriesOf(batch []term) []string {
	queries := make([]string, len(batch))
	for i, t := range batch {
		queries[i] = t.query
	}
	return queries
}

// askAlone sends one query as the user wrote it, and learns why it could not be part of a batch.
func (r *reading) askAlone(ctx context.Context, stage source.Stage, t term) {
	a := r.query(ctx, stage, t.query)
	until := time.Now().Add(recheck)
	reject := func(e *source.Error) {
		r.server.known.Learn(t.query, knowledge{until: until, rejected: e})
		r.Set(t.query, source.Reading{Err: e})
	}
	switch {
	case a.late:
		r.Late(t.query)
		return
	case a.tooLarge:
		// It may be smaller next time.
		r.server.known.Learn(t.query, knowledge{until: until})
		r.Set(t.query, source.Reading{Err: source.Invalid("the response is larger than %d MiB: the expression should give one number", source.MaxBody>>20)})
		return
	case a.refused != nil && a.refused.Type == promv1.ErrBadData:
		reject(source.Invalid("Prometheus rejects the expression").Said(a.refused.Msg))
		return
	case a.refused != nil:
		r.server.known.Learn(t.query, knowledge{until: until})
		r.Set(t.query, source.Reading{Err: source.Invalid("Prometheus cannot evaluate the expression").Said(a.refused.Msg)})
		return
	case isTypeError(a.err):
		reject(source.Invalid("the expression returns a string: it should give one number, as an instant vector or a scalar"))
		return
	case a.err != nil:
		r.Fail(t.number, r.server.unreachable(a.err), t.query)
		return
	}
	switch a.kind {
	case model.ValVector:
		r.server.known.Learn(t.query, knowledge{until: until})
		r.Set(t.query, first(a.series))
	case model.ValScalar:
		// A query with unbalanced brackets only looks like a number here.
		if enclosed(t.query) {
			r.server.known.Learn(t.query, knowledge{scalar: true})
		}
		r.Set(t.query, a.series[0].reading)
	default:
		reject(source.Invalid("the expression returns a range of values: it should give one number, as an instant vector or a scalar"))
	}
}

// isTypeError recognizes the client library's error for an unknown result type, such as a string.
func isTypeError(err error) bool {
	var e *promv1.Error
	return errors.As(err, &e) && e.Type == promv1.ErrBadResponse && strings.HasPrefix(e.Msg, "unexpected value type")
}

// query sends one request.
func (r *reading) query(ctx context.Context, stage source.Stage, expression string) result {
	var a result
	err := r.Request(ctx, stage, func(ctx context.Context) error {
		a = r.server.query(ctx, expression)
		return a.err
	})
	if err != nil {
		a.err = err
		a.late = a.late || errors.Is(err, context.DeadlineExceeded)
	}
	return a
}

// takeOne reads the response to a query that was sent as the user wrote it.
func (r *reading) takeOne(ctx context.Context, stage source.Stage, t term, a result) {
	switch a.kind {
	case model.ValVector:
		r.Set(t.query, first(a.series))
	case model.ValScalar:
		r.server.known.Learn(t.query, knowledge{scalar: true})
		r.Set(t.query, a.series[0].reading)
	default:
		r.askAlone(ctx, stage, t) // reports what is wrong with it
	}
}

// takeBatch assigns the series of a batch to their queries.
func (r *reading) takeBatch(batch []term, a result) {
	if a.kind != model.ValVector {
		r.Fail(batch[0].number, source.Unreachable("the response is not a result of the query API"), queriesOf(batch)...)
		return
	}
	found := make(map[int][]series, len(batch))
	for _, one := range a.series {
		number, err := strconv.Atoi(string(one.labels[mark]))
		if err != nil {
			continue
		}
		delete(one.labels, mark)
		found[number] = append(found[number], one)
	}
	for _, t := range batch {
		r.Set(t.query, first(found[t.number]))
	}
}

// unreachable describes why a request got no usable response.
func (s *server) unreachable(err error) *source.Error {
	var e *promv1.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return source.Unreachable("no response within %s", string(s.timeout))
	case !errors.As(err, &e):
		return source.Unreachable("%s", outbound.Describe(err))
	case e.Type == promv1.ErrBadResponse:
		return source.Unreachable("the response is not from a Prometheus query API: does the url point at Prometheus?")
	case e.Type == promv1.ErrClient: // the library's message
		return source.Unreachable("Prometheus answers with a %s: are url and credentials right?", e.Msg)
	case e.Type == promv1.ErrServer:
		return source.Unreachable("Prometheus answers with a %s", e.Msg)
	}
	return source.Unreachable("Prometheus answers with an error").Said(e.Msg)
}
