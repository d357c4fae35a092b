package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// placementDecision is one placement and its decision.
type placementDecision struct {
	queueEntry
	object *api.Placement
	// status is the last decided one, which may be ahead of the store; otherwise it is the object's
	// own. It is immutable.
	status       *api.PlacementStatus
	specRevision int64
	query        *placement.Query
	class        *class
	position     int32 // among the class's placements
	holding      bool  // has reservations

	standing
	// sentence says why clusters do not fit; nil if not computed yet.
	sentence *sentence
	// recorded is its state in the records.
	recorded *placedState
}

// standing is the state of a decision: whether all seats are taken, what merit a cluster outside
// needs to displace a chosen one (see placement.Outcome), and how far it was evaluated.
type standing struct {
	worst, worstTotal placement.Merit
	full              bool
	decided           bool
	movable           bool // the decisions of others alone may move it; see placement.Outcome
	wanting           bool // did not get what it wants
}

// placedState is what a fork needs to know of a placement besides its object. It is immutable.
type placedState struct {
	standing

	specRevision int64
	query        *placement.Query
	told         string    // its sentence
	at           time.Time // its own time
}

// state returns the current state of a placement.
func (p *placementDecision) state() placedState {
	s := placedState{
		standing: p.standing, specRevision: p.specRevision, query: p.query, at: p.at,
	}
	if p.sentence != nil {
		s.told = p.sentence.text
	}
	return s
}

// present returns the placement's decision for the engine.
func (p *placementDecision) present() placement.Present { return presentOf(p.object, p.status) }

// presentOf returns the decision in a status of a placement for the engine.
func presentOf(p *api.Placement, s *api.PlacementStatus) placement.Present {
	present := placement.Present{Decisions: s.Decisions, Labels: p.Metadata.Labels}
	present.Answered, present.Fresh = s.Answers(&p.Metadata)
	if s.ScheduledAt != nil {
		present.ScheduledAt = *s.ScheduledAt
	}
	return present
}

// want records whether it did not get what it wants.
func (p *placementDecision) want(wanting bool) {
	if p.wanting == wanting {
		return
	}
	p.wanting = wanting
	p.class.wait(p, wanting)
	if !wanting {
		p.class.silence(&p.sentence)
	}
}

// withStatus returns a placement with a status, which may be its own.
func withStatus(object *api.Placement, status *api.PlacementStatus) *api.Placement {
	if status == &object.Status {
		return object
	}
	other := *object
	other.Status = *status
	return &other
}

// sameStatus reports whether two statuses of one placement are equal.
func sameStatus(a, b *api.PlacementStatus) bool {
	return a.DecisionRevision == b.DecisionRevision && a.ObservedGeneration == b.ObservedGeneration &&
		a.ObservedRescheduleRequests == b.ObservedRescheduleRequests && columns.SameTime(a.ScheduledAt, b.ScheduledAt) &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

func sameCondition(x, y api.Condition) bool {
	return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message
}

func (p *placementDecision) kind() decidedKind  { return &placements }
func (p *placementDecision) key() api.Key       { return p.query.Key }
func (p *placementDecision) stored() api.Object { return p.object }
func (p *placementDecision) wants() bool        { return p.wanting }
func (p *placementDecision) revision() int64    { return p.specRevision }

func (p *placementDecision) part() func(api.Object) { return nil }

// result returns the placement with its status as last decided.
func (p *placementDecision) result() api.Object { return withStatus(p.object, p.status) }
