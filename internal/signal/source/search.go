package source

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

const (
	// parallel is the number of concurrent requests of one reading.
	parallel = 4
	// parallelApart is the number of additional requests for queries that are slow, or for
	// bisection.
	parallelApart = 8
	// MaxRequests is the sum of both.
	MaxRequests = parallel + parallelApart
	// divisions is how often one reading bisects a batch to find the queries at fault. What it
	// learns is kept, so the next reading continues from there.
	divisions = 200
	// longestPause is the maximum delay before a slow query is retried.
	longestPause = 5 * time.Minute
)

// Stage is the purpose of a request, which determines its share of the timeout.
type Stage int

const (
	// Alone is for a single query: all the remaining time.
	Alone Stage = iota
	// Batch is for several queries: half of the time, so that the other half is left to find the
	// slow one.
	Batch
	// Part is for a part of a bisected batch: an equal share for each level, down to a single
	// query.
	Part
	// Slow is for a query that is known to be slow.
	Slow
)

// StageOf returns the first stage of a request for a number of queries.
func StageOf(queries int) Stage {
	if queries == 1 {
		return Alone
	}
	return Batch
}

// Search is one reading of many queries in few requests. It limits the number of concurrent
// requests and their duration, and collects the results. It bisects a batch that failed, so that
// one bad query affects no other.
type Search struct {
	ctx      context.Context
	patience *Patience
	timeout  string // as in the spec, for messages
	lanes    *semaphore.Weighted
	apart    *semaphore.Weighted
	running  sync.WaitGroup
	half     time.Time     // when half of the time has passed; zero if there is no timeout
	part     time.Duration // the share of a part
	several  int           // number of slow queries that share the time

	mu        sync.Mutex
	out       map[string]Reading
	divisions int
	answered  bool     // the provider answered some request
	late      []string // queries that timed out although sent alone
	unread    []string // queries for which there was no time
	failed    *Error   // the provider did not answer some request
	failedAt  int      // number of the first query of that request
	panicked  error    // a *recovery.Panic of some request
}

// NewSearch starts a reading of queries. timeout is the provider's, as in the spec.
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

// Go runs f concurrently. A panic in it fails the whole reading.
func (s *Search) Go(f func(ctx context.Context)) {
	s.running.Go(func() {
		if err := recovery.Confine("", func() error { f(s.ctx); return nil }); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.panicked = err
		}
	})
}

// Request waits for a lane and calls send with the time available. The error is
// context.DeadlineExceeded if there is none.
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
			// Slow queries take turns.
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

// Sort reports whether a query is sent in this reading, and whether separately because it is slow.
func (s *Search) Sort(query string) (asked, slow bool) {
	slow, pausing := s.patience.isSlow(query, time.Now())
	if pausing != nil {
		s.Known(query, pausing)
		return false, true
	}
	if slow {
		s.several++
	}
	return true, slow
}

// Set records the reading of one query.
func (s *Search) Set(query string, reading Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[query] = reading
	s.answered = true
	s.patience.answered(query)
}

// Answered records that the provider responds.
func (s *Search) Answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = true
}

// Known records the result of a query that need not be sent.
func (s *Search) Known(query string, err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[query] = Reading{Err: err}
}

// Fail records the reason for the queries of a failed request. number is that of the first of them,
// so that of several failed requests the same one always determines the provider's error.
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

// Late records that queries timed out. A single one is slow, unless nothing is answered at all; of
// several it is unknown which.
func (s *Search) Late(queries ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(queries) == 1 {
		s.late = append(s.late, queries[0])
		return
	}
	s.unread = append(s.unread, queries...)
}

// MayDivide reports whether this reading may bisect one more batch.
func (s *Search) MayDivide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.divisions--
	return s.divisions >= 0
}

// Answers waits for all requests, and returns the result of Source.Read.
func (s *Search) Answers() (map[string]Reading, error) {
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panicked != nil {
		return nil, s.panicked
	}
	if len(s.late)+len(s.unread) > 0 && !s.answered && s.failed == nil {
		s.failed = Unreachable("no response within %s", s.timeout)
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
			s.out[query] = Reading{Err: Unreachable("not read yet: other queries of the provider are too slow, and finding them continues with the next reading (timeout %s)", s.timeout)}
		}
	}
	if s.failed != nil {
		return s.out, s.failed
	}
	return s.out, nil
}

// Patience tracks queries that are slow by themselves. They are sent separately and, after a second
// timeout, less and less often: a reading takes as long as its slowest query. The zero value is
// empty.
type Patience struct{ known Memory[slowness] }

type slowness struct {
	times int
	until time.Time // not sent before
	err   *Error
}

// Over implements the constraint of Memory: only an answer ends it.
func (slowness) Over(time.Time) bool { return false }

// isSlow reports whether a query is slow and, if it must not be sent now, the error.
func (p *Patience) isSlow(query string, now time.Time) (slow bool, pausing *Error) {
	k := p.known.Recall(query, now)
	if now.Before(k.until) {
		return true, k.err
	}
	return k.times > 0, nil
}

func (p *Patience) forget(asked []string) { p.known.Forget(asked) }

// answered records that a query is no longer slow.
func (p *Patience) answered(query string) {
	if slow, _ := p.isSlow(query, time.Time{}); slow {
		p.known.Learn(query, slowness{})
	}
}

// learn records that a query was slow again, and returns the error.
func (p *Patience) learn(query, timeout string) *Error {
	now := time.Now()
	k := p.known.Recall(query, now)
	k.times++
	k.err = Unreachable("no response to this query in time, although the provider responds to others (timeout %s)", timeout)
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
