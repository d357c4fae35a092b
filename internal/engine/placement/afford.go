package placement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Costly reports whether it depends on the clusters how long the expressions of the query take.
func (q *Query) Costly() bool { return q.Checks.Costly() }

// Afford evaluates the expressions of a query for some rows, or for all if rows is nil, as far as a
// budget in CEL units lasts, and reports whether it did. If so, a View or a decision costs little
// more.
func Afford(f *columns.Fleet, q *Query, others ledger.Others, rows []int, budget *int) bool {
	if !q.Costly() {
		return true
	}
	l := newEvaluation(f, q, others.Reserved)
	asked := columns.NewBitmap(f.Slots())
	for _, row := range rows {
		asked.Assign(row, f.Live().Has(row))
	}
	if rows == nil {
		copy(asked, f.Live())
	}
	return q.Checks.Afford(&l, asked, budget)
}

// AffordExplanation is Afford for an explanation, which looks at every check of every cluster.
func AffordExplanation(f *columns.Fleet, q *Query, budget *int) bool {
	if !q.Costly() {
		return true
	}
	l := q.evaluation(f, nil)
	return q.Checks.AffordAll(&l, budget)
}

// Late returns the status of a placement whose expressions take too long for it to be decided now: the
// previous one, with a condition.
func Late(was *api.PlacementStatus, now time.Time) (status api.PlacementStatus, changed bool) {
	status = *was
	changed = api.SetCondition(&status.Conditions, api.Condition{
		Type: api.ConditionExpressionsPending, Status: api.ConditionTrue, Reason: api.ReasonExpensive, Message: lateMessage,
	}, now)
	return status, changed
}

const lateMessage = "the CEL expressions in predicates take too long to be evaluated for all clusters at once; " +
	"the decision stays until they have been, while others are made: loops over fewer or shorter values cost less"

// LateExplanation is the explanation of a placement that is Late.
func LateExplanation(f *columns.Fleet, q *Query, now time.Time) *api.Explanation {
	return &api.Explanation{
		Kind: api.KindPlacement, Namespace: q.Key.Namespace, Name: q.Key.Name, At: now.UTC(),
		Summary: "not known yet: " + lateMessage, Total: f.Len(), Candidates: []api.Candidate{},
	}
}
