package api

import (
	"slices"
	"time"
)

// HistoryKinds are the kinds whose decisions are listed and kept in the history.
var HistoryKinds = []Kind{KindPlacement, KindWorkload}

// HistoryEntry is one change of a decision.
type HistoryEntry struct {
	Revision int64     `json:"revision" doc:"Store revision at which the decision was written."`
	Time     time.Time `json:"time" doc:"When the decision was made. For a deleted object, when the server that answers saw that it was."`
	Object   Key       `json:"object" doc:"Placement or workload that was decided."`
	Before   *Where    `json:"before,omitempty" doc:"Decision before. Absent if there was none."`
	After    *Where    `json:"after,omitempty" doc:"Decision after. Absent if the object was deleted."`
	// Moved follows from Before and After, and is not stored.
	Moved []Move `json:"moved" doc:"What went from where to where. Empty if the clusters and replicas are the same, as when only flavors changed."`
	Cause *Cause `json:"cause,omitempty" doc:"What made the decision change. Absent if the object was deleted."`
	// Actor is that of the cause, which has none here.
	Actor  *Actor          `json:"actor,omitempty" doc:"Who made the change that is the cause, if somebody wrote an object. Absent if it is not known, or if the reader may not read that object."`
	Margin *DecisionMargin `json:"margin,omitempty" doc:"For a placement: the scores by which a cluster was left for another. Absent if no score decided, or if the reader may not read every metric."`
}

// Move is a part of a decision that changed its cluster.
type Move struct {
	From     string `json:"from,omitempty" doc:"Cluster that was left. Absent if none was."`
	To       string `json:"to,omitempty" doc:"Cluster that was gained. Absent if none was."`
	Replicas int64  `json:"replicas,omitempty" doc:"For a workload with replicas: how many."`
}

// HistoryGap is a part of the history in which changes of decisions may be missing.
type HistoryGap struct {
	After  int64  `json:"after" doc:"Store revision after which changes may be missing."`
	Until  int64  `json:"until" doc:"Last store revision of which changes may be missing."`
	Reason string `json:"reason" doc:"Why, as a sentence."`
}

// HistoryPage is a part of the history.
type HistoryPage struct {
	Items    []HistoryEntry `json:"items" doc:"Changes of decisions, the newest first."`
	Gaps     []HistoryGap   `json:"gaps,omitempty" doc:"Where changes may be missing."`
	Continue string         `json:"continue,omitempty" doc:"Token for the next page, also if this one is short or empty. Absent on the last one."`
	// Since is what readers compare times with that they ask for.
	Since *time.Time `json:"since,omitempty" doc:"Time of the oldest change that is kept. Absent if there is none."`
}

// Moves returns what went from where to where between two decisions, either of which may be nil:
// what was left is paired with what was gained, in the order of the decisions. A workload's replicas
// are paired one by one.
func Moves(before, after *Where) []Move {
	left, gained := surplus(before, after), surplus(after, before)
	moves := []Move{}
	for len(left)+len(gained) > 0 {
		var m Move
		switch {
		case len(gained) == 0:
			m, left = Move{From: left[0].To, Replicas: left[0].Replicas}, left[1:]
		case len(left) == 0:
			m, gained = gained[0], gained[1:]
		default:
			// Both are of one workload or placement. What has no replicas is moved whole.
			n := min(left[0].Replicas, gained[0].Replicas)
			m = Move{From: left[0].To, To: gained[0].To, Replicas: n}
			left, gained = without(left, n), without(gained, n)
		}
		moves = append(moves, m)
	}
	return moves
}

// surplus returns the clusters, as To, that have more in one decision than in another.
func surplus(of, than *Where) (parts []Move) {
	if of == nil {
		return nil
	}
	for _, name := range of.Clusters {
		had := than != nil && slices.Contains(than.Clusters, name)
		more := of.Replicas[name]
		if had {
			more -= than.Replicas[name]
		}
		if !had || more > 0 {
			parts = append(parts, Move{To: name, Replicas: more})
		}
	}
	return parts
}

// without takes replicas off the first part, which is gone when it has none left.
func without(parts []Move, replicas int64) []Move {
	if parts[0].Replicas -= replicas; parts[0].Replicas <= 0 {
		return parts[1:]
	}
	return parts
}
