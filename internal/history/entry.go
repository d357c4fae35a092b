package history

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// decision is what a status says of the decision.
type decision struct {
	api.Where
	revision int64 // number of times that it has changed; 0 = never decided
	at       *time.Time
	cause    *api.Cause
	margin   *api.DecisionMargin
}

// decisionOf returns the decision in a stored status. A status that was not there, or no longer is,
// has none.
func decisionOf(kind api.Kind, status []byte) (d decision, err error) {
	if status == nil {
		return decision{}, nil
	}
	info, ok := api.LookupKind(kind)
	if !ok {
		return decision{}, fmt.Errorf("%q is not a kind of object", string(kind))
	}
	object := info.New()
	if err := store.DecodeDecision(object, status); err != nil {
		return decision{}, err
	}
	d.Where, _ = api.WhereIs(object)
	switch o := object.(type) {
	case *api.Placement:
		d.revision, d.at, d.cause, d.margin = o.Status.DecisionRevision, o.Status.ScheduledAt, o.Status.Cause, o.Status.Margin
	case *api.Workload:
		d.revision, d.at, d.cause = o.Status.DecisionRevision, o.Status.ScheduledAt, o.Status.Cause
	}
	if d.Clusters == nil {
		d.Clusters = []string{}
	}
	return d, nil
}

// lineOf returns what a change of a status means for the history: an entry if the decision
// changed, a gap if that cannot be told.
func lineOf(record *store.Record, now time.Time) (line, bool) {
	unknown := func(reason string) (line, bool) {
		return line{Gap: &api.HistoryGap{After: record.ModRevision - 1, Until: record.ModRevision, Reason: reason}}, true
	}
	switch {
	case record.Damage != nil:
		return unknown(fmt.Sprintf("the status of %s was damaged", record.Key))
	case record.Before == nil && record.CreateRevision != record.ModRevision:
		return unknown(fmt.Sprintf("the decision of %s before is not known", record.Key))
	}
	before, err := decisionOf(record.Key.Kind, record.Before)
	if err != nil {
		return unknown(fmt.Sprintf("the decision of %s before cannot be read", record.Key))
	}
	after, err := decisionOf(record.Key.Kind, record.Value)
	if err != nil {
		return unknown(fmt.Sprintf("the decision of %s cannot be read", record.Key))
	}
	if before.revision == after.revision {
		return line{}, false
	}
	e := &api.HistoryEntry{Revision: record.ModRevision, Time: now.UTC(), Object: record.Key, Cause: after.cause, Margin: after.margin}
	if c := after.cause; c != nil && c.Actor != nil {
		bare := *c
		bare.Actor = nil
		e.Cause, e.Actor = &bare, c.Actor
	}
	if before.revision > 0 {
		e.Before = &before.Where
	}
	if after.revision > 0 {
		e.After = &after.Where
	}
	if after.at != nil {
		e.Time = after.at.UTC()
	}
	return line{Entry: e}, true
}
