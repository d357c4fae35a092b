package influx

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

const (
	// recheck is how long a query that fails on its own is kept out of batches.
	recheck = 5 * time.Minute
	// Limits of one request.
	batchQueries = 500
	batchBytes   = 64 << 10
)

// term is one query. Its number is its index in the list passed to Read.
type term struct {
	number   int
	query    string
	selector selector
}

// knowledge is what was learned about a query that fails on its own: until then it is sent alone
// or, if rejected is set, not at all.
type knowledge struct {
	until    time.Time
	rejected *source.Error
}

// Over reports whether it must be checked again.
func (k knowledge) Over(now time.Time) bool { return !now.Before(k.until) }

// reading is one call of Read.
type reading struct {
	*source.Search
	server *server
}

// Read implements source.Source.
func (s *server) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	r := &reading{Search: source.NewSearch(ctx, string(s.spec.Timeout), &s.patience, queries), server: s}
	s.known.Forget(queries)
	now := time.Now()
	var together, alone, slow []term
	for i, query := range queries {
		parsed, err := parse(query)
		k := s.known.Recall(query, now)
		t := term{number: i, query: query, selector: parsed}
		switch {
		case err != nil:
			r.Known(query, source.Invalid("the name %q is not a measurement with an optional field and tags: %s", query, err))
			continue
		case k.rejected != nil:
			r.Known(query, k.rejected)
			continue
		}
		switch asked, isSlow := r.Sort(query); {
		case !asked:
		case isSlow:
			slow = append(slow, t)
		case !k.until.IsZero():
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	if len(together)+len(alone) == 0 {
		r.Go(func(ctx context.Context) {
			if err := r.ping(ctx, source.Alone); err != nil {
				r.Fail(-1, s.unreachable(err))
				return
			}
			r.Answered()
		})
	}
	for _, batch := range split(together) {
		r.Go(func(ctx context.Context) { r.ask(ctx, source.StageOf(len(batch)), batch) })
	}
	for _, t := range alone {
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Alone, []term{t}) })
	}
	for _, t := range slow {
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Slow, []term{t}) })
	}
	return r.Answers()
}

// ping checks whether any query would be answered.
func (r *reading) ping(ctx context.Context, stage source.Stage) error {
	return r.Request(ctx, stage, func(ctx context.Context) error {
		return r.server.use(ctx, func(l language) error { return l.ping(ctx) })
	})
}

// ask sends several queries in one request. If one of them makes it fail, or it times out, the
// batch is bisected until that query is alone.
func (r *reading) ask(ctx context.Context, stage source.Stage, batch []term) {
	var found *choice
	err := r.Request(ctx, stage, func(ctx context.Context) error {
		return r.server.use(ctx, func(l language) error {
			found = newChoice(batch)
			return l.ask(ctx, batch, found.offer)
		})
	})
	var refused *refusal
	errors.As(err, &refused)
	tooLarge := errors.Is(err, outbound.ErrTooLarge)
	garbled := errors.Is(err, errNotInflux)
	late := errors.Is(err, context.DeadlineExceeded) || isGatewayTimeout(err)
	switch {
	case err == nil:
		r.settle(found)
		return
	case late && (len(batch) == 1 || r.Over()):
		r.Late(queriesOf(batch)...)
		return
	case late || tooLarge:
	case refused == nil && !garbled:
		r.Fail(batch[0].number, r.server.unreachable(err), queriesOf(batch)...)
		return
	default:
		// Determine whether these queries or all would fail.
		if err := r.ping(ctx, stage); err != nil {
			r.Fail(batch[0].number, r.server.unreachable(err), queriesOf(batch)...)
			return
		}
	}
	switch {
	case len(batch) == 1 && tooLarge:
		// It may be smaller next time.
		r.server.known.Learn(batch[0].query, knowledge{until: time.Now().Add(recheck)})
		r.Set(batch[0].query, source.Reading{Err: source.Invalid("the response is larger than %d MiB: the name should select one series, by field and tags", source.MaxBody>>20)})
	case len(batch) == 1 && garbled:
		r.blame(batch[0], source.Invalid("the result of this query cannot be read: it should be one number"))
	case len(batch) == 1:
		r.blame(batch[0], source.Invalid("%s", refused).Said(refused.said))
	case !r.MayDivide():
		r.postpone(batch)
	default:
		half := len(batch) / 2
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Part, batch[:half]) })
		r.Go(func(ctx context.Context) { r.ask(ctx, source.Part, batch[half:]) })
	}
}

// isGatewayTimeout recognizes the response of a proxy to a slow server.
func isGatewayTimeout(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.status == http.StatusGatewayTimeout
}

func queriesOf(batch []term) []string {
	queries := make([]string, len(batch))
	for i, t := range batch {
		queries[i] = t.query
	}
	return queries
}

// settle applies the results.
func (r *reading) settle(found *choice) {
	for _, c := range found.all {
		r.Set(c.term.query, c.reading(r.server.spec.Influx.Bucket))
	}
}

// blame reports an error for one query, and keeps it out of the next batches.
func (r *reading) blame(t term, why *source.Error) {
	r.server.known.Learn(t.query, knowledge{until: time.Now().Add(recheck)})
	r.Set(t.query, source.Reading{Err: why})
}

// postpone leaves queries to the next reading, which knows more.
func (r *reading) postpone(batch []term) {
	for _, t := range batch {
		r.Known(t.query, source.Invalid("not read yet: InfluxDB rejects many queries, and finding them continues with the next reading"))
	}
}

// split splits terms into batches within the limits; a term that is too long for them is a batch of
// its own.
func split(terms []term) [][]term {
	var batches [][]term
	start, size := 0, 0
	for i, t := range terms {
		// Escaping and the syntax around a condition make it longer.
		length := 2*len(t.query) + 100
		if i > start && (i-start == batchQueries || size+length > batchBytes) {
			batches = append(batches, terms[start:i])
			start, size = i, 0
		}
		size += length
	}
	if start < len(terms) {
		batches = append(batches, terms[start:])
	}
	return batches
}
