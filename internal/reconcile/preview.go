package reconcile

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// Preview answers what a placement would be decided if it were written now. The
// placement is complete as it would be stored: its metadata with uid and
// generation, and the status of the one it replaces, if there is one. Nothing is
// changed. The error is that of a spec that breaks a rule.
func (r *Reconciler) Preview(placement *api.Placement) (api.PlacementStatus, *api.Explanation, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.planner
	query, err := engine.NewQuery(placement)
	if err != nil {
		return api.PlacementStatus{}, nil, fmt.Errorf("preview: %w", err)
	}
	now := r.now()
	placed := &tracked{object: placement, query: query, status: placement.Status}
	var view *engine.View
	if c, ok := p.classes[query.Class]; ok {
		view = c.view
	} else {
		view = engine.NewView(p.fleet, query, p.others(), nil)
	}
	explained := engine.Explain(p.fleet, query, view.Ranking, p.others(), placed.present(), now)
	status, _ := engine.NewStatus(p.fleet, query, view, placement, explained.Outcome, now, explained.Summary)
	return status, explained.Render(), nil
}
