package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ExplainPast explains the decision of a placement or workload as Explain did after a pass: the same
// functions are asked again, on the same objects and for the same time. Nothing is decided again. Only why a
// workload follows its policy is not recorded: as after a restart, the policy holds the claim. past returns
// all objects with their status after the pass, and the time for which it decided. It is called once another
// simulation may run, because it may take as much memory as the fleet.
func (r *Reconciler) ExplainPast(ctx context.Context, key api.Key, past func(ctx context.Context) ([]api.Object, time.Time, error)) (*api.Explanation, error) {
	release, err := r.mayFork(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	objects, at, err := past(ctx)
	if err != nil {
		return nil, err
	}
	return explainAmong(objects, key, at)
}

// explainAmong explains a decision among all objects.
func explainAmong(objects []api.Object, key api.Key, at time.Time) (*api.Explanation, error) {
	p := newPlanner(slog.New(slog.DiscardHandler))
	// As when a server starts: what decisions are based on comes before them.
	for _, decided := range []bool{false, true} {
		for i, object := range objects {
			if isDecided(object.ObjectKind()) == decided {
				p.put(object, int64(i)+1)
			}
		}
	}
	p.advance(at)
	for _, w := range p.bindings.workloads {
		p.bindings.claim(w)
	}
	for _, object := range objects {
		if k := decidedAs(object.ObjectKind()); k != nil {
			p.record(api.KeyOf(object))
		}
	}
	s := p.snapshot(nil)
	known, ok := s.get(key)
	k := decidedAs(key.Kind)
	if !ok || k == nil {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return k.explained(s, &known, at), nil
}
