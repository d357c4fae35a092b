package influx

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

const (
	// parallel is how many requests one reading has under way at a time.
	parallel = 4
	// searches is how many requests one reading spends on finding out which
	// queries of a failed batch are to blame.
	searches = 200
	// recheck is for how long a query that fails by itself is kept out of
	// batches.
	recheck = 5 * time.Minute
	// The limits of one request.
	batchQueries = 500
	batchBytes   = 64 << 10
)

// term is one query. Its number is its position in the list that Read was given.
type term struct {
	number   int
	query    string
	selector selector
}

// knowledge is what has been learned about a query that fails by itself: until
// then it is asked alone, or, where rejected is set, not at all.
type knowledge struct {
	until    time.Time
	rejected *source.Error
}

// Over reports whether it has to be found out again.
func (k knowledge) Over(now time.Time) bool { return !now.Before(k.until) }

// reading is one call of Read.
type reading struct {
	server *server

	mu       sync.Mutex
	out      map[string]source.Reading
	searches int
	failed   *source.Error // the provider did not answer some request
	failedAt int           // number of the first query of that request
}

// Read implements source.Source.
func (s *server) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	r := &reading{server: s, out: make(map[string]source.Reading, len(queries)), searches: searches}
	s.known.Forget(queries)
	now := time.Now()
	var together, alone []term
	for i, query := range queries {
		parsed, err := parse(query)
		k := s.known.Recall(query, now)
		t := term{number: i, query: query, selector: parsed}
		switch {
		case err != nil:
			r.out[query] = source.Reading{Err: source.Invalid("the name %q is not a measurement with an optional field and tags: %s", query, err)}
		case k.rejected != nil:
			r.out[query] = source.Reading{Err: k.rejected}
		case !k.until.IsZero():
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	var requests errgroup.Group
	requests.SetLimit(parallel)
	if len(together) == 0 && len(alone) == 0 {
		requests.Go(func() error {
			if err := s.use(ctx, func(l language) error { return l.ping(ctx) }); err != nil {
				r.fail(nil, s.unreachable(err))
			}
			return nil
		})
	}
	for _, batch := range split(together) {
		requests.Go(func() error { r.ask(ctx, batch); return nil })
	}
	for _, t := range alone {
		requests.Go(func() error { r.ask(ctx, []term{t}); return nil })
	}
	_ = requests.Wait()
	if r.failed != nil {
		return r.out, r.failed
	}
	return r.out, nil
}

// ask asks for several queries in one request. Where one of them spoils it, the
// batch is cut until that one stands alone.
func (r *reading) ask(ctx context.Context, batch []term) {
	var found *choice
	err := r.server.use(ctx, func(l language) error {
		found = newChoice(batch)
		return l.ask(ctx, batch, found.offer)
	})
	var refused *refusal
	errors.As(err, &refused)
	tooLarge := errors.Is(err, outbound.ErrTooLarge)
	switch {
	case err == nil:
		r.settle(found)
		return
	case !tooLarge && refused == nil:
		r.fail(batch, r.server.unreachable(err))
		return
	case refused != nil:
		// Is it the queries, or would any query fail?
		if err := r.server.use(ctx, func(l language) error { return l.ping(ctx) }); err != nil {
			r.fail(batch, r.server.unreachable(err))
			return
		}
	}
	switch {
	case len(batch) == 1 && tooLarge:
		e := source.Invalid("the answer is larger than %d MiB: the name should select one series, by field and tags", source.MaxBody>>20)
		r.server.known.Learn(batch[0].query, knowledge{until: time.Now().Add(recheck), rejected: e})
		r.set(batch[0].query, source.Reading{Err: e})
	case len(batch) == 1:
		r.blame(batch[0], refused)
	case !r.maySearch():
		r.postpone(batch)
	default:
		half := len(batch) / 2
		r.ask(ctx, batch[:half])
		r.ask(ctx, batch[half:])
	}
}

// settle takes over what was found.
func (r *reading) settle(found *choice) {
	for _, c := range found.all {
		r.set(c.term.query, c.reading(r.server.spec.Influx.Bucket))
	}
}

// blame gives one query the fault, and keeps it out of the next batches.
func (r *reading) blame(t term, refused *refusal) {
	r.server.known.Learn(t.query, knowledge{until: time.Now().Add(recheck)})
	r.set(t.query, source.Reading{Err: source.Invalid("%s", refused)})
}

// postpone leaves queries to the next reading, which knows more.
func (r *reading) postpone(batch []term) {
	for _, t := range batch {
		r.set(t.query, source.Reading{Err: source.Invalid("not read: InfluxDB refuses so many queries that the search for them goes on with the next reading")})
	}
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
	if r.failed == nil || len(batch) > 0 && batch[0].number < r.failedAt {
		r.failed = e
		if len(batch) > 0 {
			r.failedAt = batch[0].number
		}
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

// split cuts terms into batches within the limits; a term too long for them is
// a batch of its own.
func split(terms []term) [][]term {
	var batches [][]term
	start, size := 0, 0
	for i, t := range terms {
		// Escaping and what stands around a condition make it longer.
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
