package placement

import (
	"fmt"
	"iter"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// unread returns a metric that a decision depends on and that cannot be read on a chosen row, or nil.
func unread(f *columns.Fleet, q *Query, row int) *columns.MetricState {
	if !f.Unread() {
		return nil
	}
	if s := q.Checks.Unread(&filter.Evaluation{Fleet: f}, row); s != nil {
		return s
	}
	return q.scoring.Unread(f, row)
}

// ObserveUnread sets the condition that says which metric a decision depends on that cannot be read on
// one of the chosen rows, or removes it if there is none. It names only the first metric by name and
// no clusters, so that it seldom changes.
func ObserveUnread(conditions *[]api.Condition, f *columns.Fleet, q *Query, rows iter.Seq[int], now time.Time) (changed bool) {
	var first *columns.MetricState
	if f.Unread() {
		for row := range rows {
			if s := unread(f, q, row); s != nil && (first == nil || s.Key.Compare(first.Key) < 0) {
				first = s
			}
		}
	}
	if first == nil {
		return api.RemoveCondition(conditions, api.ConditionMetricsUnread)
	}
	return api.SetCondition(conditions, api.Condition{
		Type: api.ConditionMetricsUnread, Status: api.ConditionTrue, Reason: first.Reason,
		Message: fmt.Sprintf("metric %q cannot be read; clusters that were chosen with it stay until it can be", first.Key.Path()),
	}, now)
}

// UnreadMatters reports whether a change of a chosen row may change what ObserveUnread has set.
func UnreadMatters(conditions []api.Condition, f *columns.Fleet, q *Query, row int) bool {
	return unread(f, q, row) != nil || api.FindCondition(conditions, api.ConditionMetricsUnread) != nil
}
