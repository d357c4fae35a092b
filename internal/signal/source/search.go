package source

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
)

const (
	// parallel is how many requests one reading has under way at a time.
	parallel = 4
	// parallelApart is how many more it has under way for queries that are slow, or
	// among which one is looked for.
	parallelApart = 8
	// MaxRequests is how many that are together.
	MaxRequests = parallel + parallelApart
	// divisions is how often one reading divides a batch to find out which of its
	// queries are to blame. What it learns stays learned, so that the next reading
	// goes on from there.
	divisions = 200
	// longestPause is after which time at most a slow query is asked again.
	longestPause = 5 * time.Minute
)

// Stage says for what a request is, and so which part of the time of a reading it may
// take.
type Stage int

const (
	// Alone is for a query that is asked alone: all the time that is left.
	Alone Stage = iota
	// Batch is for several queries: half of the time, so that the other half is left
	// to find the one that is slow.
	Batch
	// Part is for a part of a batch that was divided: an equal share for each
	// division, down to a single query.
	Part
	// Slow is for a query that is known to be slow.
	Slow
)

// StageOf is the first stage of a request for a number of queries.
func StageOf(queries int) Stage {
	if queries == 1 {
		return Alone
	}
	return Batch
}

// Search is one reading of many queries in few requests. It bounds how many requests
// are under way and how long each may take, and keeps the answers. It divides a batch
// that failed, so that one query which spoils a request costs no other its value.
type Search struct {
	ctx      context.Context
	patience *Patience
	timeout  string // as the spec writes it, for messages
	lanes    *semaphore.Weighted
	apart    *semaphore.Weighted
	running  sync.WaitGroup
	half     time.Time     // when half of the time is over; zero where it has no bound
	part     time.Duration // the share of a part
	several  int           // how many slow queries share the time

	mu        sync.Mutex
	out       map[string]Reading
	divisions int
	answered  bool     // the provider answered some request
	late      []string // queries that got no answer in time, though asked alone
	unread    []string // queries that there was no time for
	failed    *Error   // the provider did not answer some request
	failedAt  int      // number of the first query of that request
	panicked  error    // a *fault.Panic of some request
}

// NewSearch begins a reading of queries. timeout is the provider's, as its spec writes it.
func NewSearch(ctx context.Context, timeout string, patience *Patience, queries []string) *Search {
	patience.forget(queries)
	s := &Search{
		ctx: ctx, patience: patience, timeout: timeout, lanes: semaphore.NewWeighted(parallel), apart: semaphore.NewWeighted(parallelApart),
		out: make(map[string]Reading, len(queries)), divisions: divisions,
	}
	if deadline, ok := ctx.Deadline(); ok {
		half := time.Until(deadline) / 2
		s.half = deadline.Add(-half)
		s.part = half / time.Duration(max(bits.Len(uint(len(queries))), 1))
	}
	return s
}

// Go runs f beside the others. A panic in it is the error of the whole reading.
func (s *Search) Go(f func(ctx context.Context)) {
	s.running.Go(func() {
		if err := fault.Confine("", func() error { f(s.ctx); return nil }); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.panicked = err
		}
	})
}

// Request waits for a lane and calls send with the time that there is for it. The
// error is context.DeadlineExceeded where that is over.
func (s *Search) Request(ctx context.Context, stage Stage, send func(ctx context.Context) error) error {
	lanes := s.lanes
	if stage == Part || stage == Slow {
		lanes = s.apart
	}
	if err := lanes.Acquire(ctx, 1); err != nil {
		return err
	}
	defer lanes.Release(1)
	if deadline, ok := ctx.Deadline(); ok && stage != Alone {
		within := s.part
		switch stage {
		case Batch:
			within = max(time.Until(s.half), s.part)
		case Slow:
			// They take turns.
			within = time.Until(deadline) / time.Duration((s.several+parallelApart-1)/parallelApart)
		case Part, Alone:
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	err := send(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// Over reports whether there is no time left for a part.
func (s *Search) Over() bool {
	deadline, ok := s.ctx.Deadline()
	return s.ctx.Err() != nil || ok && time.Until(deadline) < s.part
}

// Sort tells whether a query is asked at all in this reading, and whether apart from
// the others because it is slow.
func (s *Search) Sort(query string) (asked, slow bool) {
	slow, pausing := s.patience.recall(query, time.Now())
	if pausing != nil {
		s.Known(query, pausing)
		return false, true
	}
	if slow {
		s.several++
	}
	return true, slow
}

// Set notes the answer to one query.
func (s *Search) Set(query string, reading Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[query] = reading
	s.answered = true
	s.patience.answered(query)
}

// Answered notes that the provider answers.
func (s *Search) Answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = true
}

// Known notes the answer to a query that nobody has to be asked about.
func (s *Search) Known(query string, err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[query] = Reading{Err: err}
}

// Fail gives the queries of a request that got no usable answer the reason. number is
// that of the first of them: of several failed requests always the same one speaks for
// the provider.
func (s *Search) Fail(number int, e *Error, queries ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || number < s.failedAt {
		s.failed, s.failedAt = e, number
	}
	for _, query := range queries {
		s.out[query] = Reading{Err: e}
	}
}

// Late notes that queries got no answer in time. One alone is slow, unless nothing is
// answered at all; of several it is not known which.
func (s *Search) Late(queries ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(queries) == 1 {
		s.late = append(s.late, queries[0])
		return
	}
	s.unread = append(s.unread, queries...)
}

// MayDivide reports whether this reading may divide one more batch.
func (s *Search) MayDivide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.divisions--
	return s.divisions >= 0
}

// Answers waits for all requests, and returns what Source.Read does.
func (s *Search) Answers() (map[string]Reading, error) {
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panicked != nil {
		return nil, s.panicked
	}
	if len(s.late)+len(s.unread) > 0 && !s.answered && s.failed == nil {
		s.failed = Unreachable("no answer within %s", s.timeout)
	}
	for _, query := range s.late {
		switch {
		case !s.answered:
			s.out[query] = Reading{Err: s.failed}
		default:
			s.out[query] = Reading{Err: s.patience.learn(query, s.timeout)}
		}
	}
	for _, query := range s.unread {
		switch {
		case !s.answered:
			s.out[query] = Reading{Err: s.failed}
		default:
			s.out[query] = Reading{Err: Unreachable("not read: other queries of the provider take so long that the search for them goes on with the next reading (timeout %s)", s.timeout)}
		}
	}
	if s.failed != nil {
		return s.out, s.failed
	}
	return s.out, nil
}

// Patience remembers queries that are slow by themselves. They are asked apart from
// the others, and after a second time without an answer more and more rarely: all that
// is read waits for the slowest. The zero value knows none.
type Patience struct{ known Memory[slowness] }

type slowness struct {
	times int
	until time.Time // not asked before
	err   *Error
}

// Over implements the bound of Memory: only an answer ends it.
func (slowness) Over(time.Time) bool { return false }

// recall reports whether a query is slow, and, where it is not to be asked now, what
// is wrong with it.
func (p *Patience) recall(query string, now time.Time) (slow bool, pausing *Error) {
	k := p.known.Recall(query, now)
	if now.Before(k.until) {
		return true, k.err
	}
	return k.times > 0, nil
}

func (p *Patience) forget(asked []string) { p.known.Forget(asked) }

// answered notes that a query is slow no more.
func (p *Patience) answered(query string) {
	if slow, _ := p.recall(query, time.Time{}); slow {
		p.known.Learn(query, slowness{})
	}
}

// learn notes that a query was slow once more, and says so.
func (p *Patience) learn(query, timeout string) *Error {
	now := time.Now()
	k := p.known.Recall(query, now)
	k.times++
	k.err = Unreachable("no answer to this query in time, though the provider answers others (timeout %s)", timeout)
	if k.times > 1 {
		pause := longestPause
		if limit, err := time.ParseDuration(timeout); err == nil && k.times < 8 {
			pause = min(limit<<(k.times-1), longestPause)
		}
		k.until = now.Add(pause)
	}
	p.known.Learn(query, k)
	return k.err
}
