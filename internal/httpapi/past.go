package httpapi

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// explainPast explains a decision as it was at a store revision or at a time.
func (o *objects) explainPast(ctx context.Context, who auth.Identity, key api.Key, text string) (*api.Explanation, error) {
	revision, at, err := o.moment(text)
	if err != nil {
		return nil, err
	}
	if !o.slots.TryAcquire(1) {
		return nil, problem.New(api.ProblemTooManyRequests, "too many simulations and explanations of the past are running: repeat the request").WithHeader("Retry-After", "1")
	}
	defer o.slots.Release(1)
	past, err := o.fleet.At(ctx, revision)
	if errors.Is(err, store.ErrCompacted) {
		return nil, problem.New(api.ProblemRevisionGone, "the store no longer has revision %d, which at=%s is about: it keeps what its setting keep-revisions says", revision, text)
	}
	if err != nil {
		return nil, err
	}
	entry := past.Get(key)
	if entry == nil {
		return nil, problem.New(api.ProblemNotFound, "%s did not exist at revision %d", key, revision)
	}
	then := o.rights.At(past)
	if err := then.MayRead(who, entry.Object); err != nil {
		return nil, err
	}
	explanation, err := o.decisions.ExplainPast(ctx, past, key, at)
	if err != nil {
		return nil, err
	}
	// What was hidden then stays hidden, and what has been hidden since is, too.
	return o.rights.Visible(who, then.Visible(who, explanation)), nil
}

// moment returns the store revision that a text is about, and the time if it is one. At a time, everything was as just
// before the next decision.
func (o *objects) moment(text string) (revision int64, at time.Time, err error) {
	now := o.fleet.Snapshot().Revision()
	if revision, err = strconv.ParseInt(text, 10, 64); err == nil {
		if revision < 1 || revision > now {
			return 0, at, problem.Invalid("at", "%d must be a revision of the store, from 1 to %d", revision, now)
		}
		return revision, at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return 0, at, problem.Invalid("at", "%q must be a revision of the store such as 20417, or a time such as 2026-03-01T12:00:00Z", text)
	}
	switch {
	case at.After(o.now()):
		return 0, at, problem.Invalid("at", "%s has not come yet: simulate what will be", text)
	case o.history == nil:
		return 0, at, problem.New(api.ProblemNotFound, "this server keeps no history, so it does not know which revision the store had at %s: give a revision", text)
	}
	next, known := o.history.After(at)
	switch {
	case !known:
		return 0, at, problem.New(api.ProblemRevisionGone, "the history of this server does not reach back to %s", text)
	case next == 0:
		return now, at, nil
	}
	return next - 1, at, nil
}
