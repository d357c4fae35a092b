package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// placementDecision is one placement and its decision.
type placementDecision struct {
	turn
	object *api.Placement
	// status is that as last decided, which may be ahead of the store; the object's own
	// where it is not. It never changes.
	status       *api.PlacementStatus
	specRevision int64
	query        *placement.Query
	class        *class
	position     int32 // among the class's placements
	holding      bool  // has reservations

	standing
	// sentence says why clusters do not fit it, nil where it has not been asked.
	sentence *sentence
	// recorded is its state in the records.
	recorded *placedState
}

// standing is how a decision stands: whether every wanted seat is taken, and what an
// outsider has to be better than (see placement.Outcome), and how far it was looked at.
type standing struct {
	worst, worstTotal placement.Merit
	full              bool
	decided           bool
	resumed           bool // was decided by an earlier run of the server, and not looked at since
	wanting           bool // did not get what it wants
}

// placedState is what a fork has to know of a placement besides its object. It never
// changes.
type placedState struct {
	standing

	specRevision int64
	query        *placement.Query
	told         string    // its sentence
	at           time.Time // its own instant
}

// state is that of a placement now.
func (p *placementDecision) state() placedState {
	s := placedState{
		standing: p.standing, specRevision: p.specRevision, query: p.query, at: p.at,
	}
	if p.sentence != nil {
		s.told = p.sentence.text
	}
	return s
}

// present is the placement's decision as the engine takes it.
func (p *placementDecision) present() placement.Present { return presentOf(p.object, p.status) }

// presentOf is the decision in a status of a placement as the engine takes it.
func presentOf(p *api.Placement, s *api.PlacementStatus) placement.Present {
	present := placement.Present{
		Decisions: s.Decisions,
		Answered:  s.ObservedGeneration == p.Metadata.Generation,
		Fresh:     s.ObservedRescheduleRequests != p.Metadata.RescheduleRequests,
	}
	if s.ScheduledAt != nil {
		present.ScheduledAt = *s.ScheduledAt
	}
	return present
}

// want notes whether it did not get what it wants.
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

// withStatus is a placement with a status, which may be its own.
func withStatus(object *api.Placement, status *api.PlacementStatus) *api.Placement {
	if status == &object.Status {
		return object
	}
	other := *object
	other.Status = *status
	return &other
}

// sameStatus reports whether two statuses of one placement say the same.
func sameStatus(a, b *api.PlacementStatus) bool {
	return a.DecisionRevision == b.DecisionRevision && a.ObservedGeneration == b.ObservedGeneration &&
		a.ObservedRescheduleRequests == b.ObservedRescheduleRequests && sameInstant(a.ScheduledAt, b.ScheduledAt) &&
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

// result is the placement with its status as last decided.
func (p *placementDecision) result() api.Object { return withStatus(p.object, p.status) }
