package placement

import (
	"iter"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// UnreadCondition says which metric that a decision for some rows depends on cannot be read on one
// of them. ok is false if there is none.
func UnreadCondition(f *columns.Fleet, q *Query, rows iter.Seq[int]) (c api.Condition, ok bool) {
	if !f.Unread() {
		return c, false
	}
	var out Outcome
	for row := range rows {
		out.Choices = append(out.Choices, Choice{Row: row})
	}
	return unreadCondition(f, q, out)
}
