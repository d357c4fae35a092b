package movement

import (
	"cmp"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Seat is what an object has on one cluster, or is meant to have there.
type Seat struct {
	Cluster string
	// Units are its replicas if they are divided among clusters, and otherwise 1.
	Units int64
}

// Change is a decision of an object with a rollout, as it is found at one instant.
type Change struct {
	Rules *api.Rollout
	// Divided says that seats are replicas, which can move in part.
	Divided bool
	// Stands is what stands, and Target what is meant, best first.
	Stands, Target []Seat
	// Under is the rollout that is under way, nil if none is. It is not changed.
	Under *api.RolloutStatus
	// Revision is that of the last rollout.
	Revision int64
	// Written says that a user wrote the object or asked for a new decision since the last look.
	// Clusters that have failed are tried again.
	Written bool
	// Group returns the place of a cluster's group among the groups, and its name.
	Group func(cluster string) (place int, name string)
	// Lost reports whether a cluster that stands must be left at once: it is offline, gone, or has
	// a taint that evicts.
	Lost func(cluster string) bool
	// Online reports whether a cluster is online.
	Online func(cluster string) bool
	// Health is what was last reported about the object.
	Health []api.ClusterHealth
	Now    time.Time
}

// Staged is how far a change has come.
type Staged struct {
	// Stands is what stands from now on: what is meant first, in its order, then what is still being
	// left.
	Stands []Seat
	// Rollout is the state to keep; nil if what is meant stands.
	Rollout *api.RolloutStatus
	// Revision is that of the last rollout.
	Revision int64
	// NextAt is when to look again although nothing has changed; zero if never.
	NextAt time.Time
}

// Stage takes a decision from what stands towards what is meant, as far as the rules permit.
//
// The rules: clusters that are lost are left at once, and as many others are gained at once; the
// first decision is not staged. Everything else is divided into steps of at most max_concurrent
// clusters, none of which belong to two groups. A step begins when every cluster of the one before
// is done or has failed, no more clusters have failed than max_failures, and it is approved if that
// is required. Its clusters are then gained. A cluster is done when it has been healthy for
// min_success_time, and no more is left than is done. What has no successor is left in steps of its
// own. If replicas are divided, only those that go from one cluster to another are staged: more or
// fewer altogether follow at once.
//
// Another target is another rollout, with another revision, which starts from what stands: clusters
// in motion that are still meant stay in motion, in its first step, and others are left first.
func Stage(c Change) Staged {
	s := &stage{Change: c, has: units(c.Stands), wants: units(c.Target), abandoned: map[string]int64{}}
	if len(c.Stands) == 0 && c.Under == nil {
		return Staged{Stands: c.Target, Revision: c.Revision}
	}
	if c.Under != nil {
		s.moves = redated(c.Under.Moves, c.Now)
		s.remeasure()
	}
	s.gainAtOnce(s.leaveLost())
	s.keepPredecessors()
	s.plan()
	for i := range s.moves {
		if m := &s.moves[i]; m.StartedAt != nil && m.DoneAt == nil {
			s.look(m, true)
		}
	}
	s.leave()
	s.advance()
	return s.result()
}

// stage is a change while it is decided.
type stage struct {
	Change

	has, wants map[string]int64
	moves      []api.RolloutMove
	// abandoned are the units that were in motion and are no longer meant, by cluster.
	abandoned map[string]int64

	revision  int64
	startedAt *time.Time
	approved  int64
	step      int64
	waiting   api.RolloutWait
	nextAt    time.Time
}

func units(seats []Seat) map[string]int64 {
	of := make(map[string]int64, len(seats))
	for _, s := range seats {
		of[s.Cluster] += s.Units
	}
	return of
}

func total(of map[string]int64) (n int64) {
	for _, u := range of {
		n += u
	}
	return n
}

// redated returns moves without instants that lie ahead, which a server with another clock has
// written: they count as now.
func redated(moves []api.RolloutMove, now time.Time) []api.RolloutMove {
	moves = slices.Clone(moves)
	for i := range moves {
		m := &moves[i]
		for _, at := range []**time.Time{&m.StartedAt, &m.HealthySince, &m.FailedAt, &m.DoneAt} {
			if *at != nil && (*at).After(now) {
				*at = instant(now)
			}
		}
	}
	return moves
}

// remeasure has the moves that are under way count as seats do now: whether replicas are divided may
// be otherwise than when they began. Then all that a cluster has is in motion, and once.
func (s *stage) remeasure() {
	last := map[string]int{}
	for i := range s.moves {
		switch m := &s.moves[i]; {
		case !gains(m):
		case !s.Divided:
			last[m.Cluster] = i
		case m.Replicas == 0:
			m.Replicas = s.has[m.Cluster]
		}
	}
	if s.Divided {
		return
	}
	moves := s.moves[:0]
	for i, m := range s.moves {
		if m.Replicas = 0; !gains(&m) || last[m.Cluster] == i {
			moves = append(moves, m)
		}
	}
	s.moves = moves
}

func instant(at time.Time) *time.Time {
	at = at.UTC()
	return &at
}

// gains reports whether a move has begun to gain a cluster and is not done.
func gains(m *api.RolloutMove) bool { return !m.Leaves && m.StartedAt != nil && m.DoneAt == nil }

// unitsOf returns how many units a move is about.
func (s *stage) unitsOf(m *api.RolloutMove) int64 {
	if s.Divided {
		return m.Replicas
	}
	return 1
}

// leaveLost leaves the clusters that are lost, and returns how many units must be gained at once for
// that: not those of a cluster that was in motion, because what it was to replace still stands, nor
// those whose successor stands already.
func (s *stage) leaveLost() (forced int64) {
	lost := map[string]int64{}
	for cluster, u := range s.has {
		if s.Lost(cluster) {
			lost[cluster] = u
			delete(s.has, cluster)
		}
	}
	if len(lost) == 0 {
		return 0
	}
	successors := int64(0)
	s.moves = slices.DeleteFunc(s.moves, func(m api.RolloutMove) bool {
		_, gone := lost[m.Cluster]
		if gains(&m) && gone {
			lost[m.Cluster] -= s.unitsOf(&m)
		} else if gains(&m) {
			successors += s.unitsOf(&m)
		}
		return gone && m.DoneAt == nil
	})
	left := int64(0) // were being left, or have units that were
	for cluster, u := range lost {
		if u = max(u, 0); s.Under != nil && !s.Under.Targets(cluster) {
			left += u
		} else {
			forced += u
		}
	}
	return forced + max(left-successors, 0)
}

// gainAtOnce gains what is not staged, the best clusters first: as many units as were lost, and if
// replicas are divided, all that there are more of than stand.
func (s *stage) gainAtOnce(forced int64) {
	for _, t := range s.Target {
		if t.Units == 0 {
			s.has[t.Cluster] += 0 // without replicas there is nothing to wait for
		}
	}
	n := total(s.wants) - total(s.has)
	if !s.Divided {
		n = min(n, forced)
	}
	fill := func(standing bool) {
		for _, t := range s.Target {
			has, stands := s.has[t.Cluster]
			x := min(t.Units-has, n)
			if x <= 0 || stands != standing {
				continue
			}
			s.has[t.Cluster] = has + x
			n -= x
			for i := range s.moves { // what was to come is there
				if m := &s.moves[i]; m.Cluster == t.Cluster && m.StartedAt == nil && !m.Leaves {
					m.Replicas = max(m.Replicas-x, 0)
				}
			}
			s.moves = slices.DeleteFunc(s.moves, func(m api.RolloutMove) bool {
				return m.Cluster == t.Cluster && m.StartedAt == nil && !m.Leaves && (!s.Divided || m.Replicas == 0)
			})
		}
	}
	fill(true)
	fill(false)
}

// keepPredecessors takes back moves that would leave a cluster without a successor, if one is needed
// now: another cluster that was to be left for a successor is lost, so that this one takes its part.
func (s *stage) keepPredecessors() {
	surplus := len(s.left())
	for i := range s.moves {
		if m := &s.moves[i]; !m.Leaves && m.DoneAt == nil {
			surplus--
		}
	}
	kept := s.moves[:0]
	for _, m := range s.moves {
		if m.Leaves && m.StartedAt == nil {
			if surplus <= 0 {
				continue
			}
			surplus--
		}
		kept = append(kept, m)
	}
	s.moves = kept
}

// plan determines the moves: those of the rollout under way if they still lead to the target,
// otherwise new ones.
func (s *stage) plan() {
	s.revision = s.Revision
	if s.Under != nil {
		s.startedAt, s.approved = s.Under.StartedAt, s.Under.ApprovedStep
	}
	retargeted := s.Under == nil || s.retargeted()
	if !retargeted && !s.Written && s.leads() {
		return
	}
	before := s.moves
	s.keepMoving(s.Written)
	s.moves = s.stepped(s.moves, s.planned())
	if len(s.moves) == 0 || !retargeted && slices.EqualFunc(before, s.moves, samePlan) {
		return // approvals are for these very steps
	}
	s.approved = 0
	if slices.ContainsFunc(s.moves, func(m api.RolloutMove) bool { return m.StartedAt != nil }) {
		s.approved = 1
	}
	s.revision++
	s.startedAt = instant(s.Now)
}

func samePlan(a, b api.RolloutMove) bool {
	return a.Cluster == b.Cluster && a.Replicas == b.Replicas && a.Leaves == b.Leaves && a.Step == b.Step && a.NeedsApproval == b.NeedsApproval &&
		(a.StartedAt == nil) == (b.StartedAt == nil)
}

// retargeted reports whether the target is another than that of the rollout under way.
func (s *stage) retargeted() bool {
	if len(s.Under.Target) != len(s.wants) {
		return true
	}
	for _, t := range s.Under.Target {
		if u, ok := s.wants[t.Cluster]; !ok || s.Divided && u != t.Replicas {
			return true
		}
	}
	return false
}

// leads reports whether the moves lead from what stands to the target.
func (s *stage) leads() bool {
	to := make(map[string]int64, len(s.wants))
	for i := range s.moves {
		if m := &s.moves[i]; m.StartedAt == nil && !m.Leaves {
			to[m.Cluster] += s.unitsOf(m)
		}
	}
	for cluster, u := range s.wants {
		if max(u-s.has[cluster], 0) != to[cluster] {
			return false
		}
		delete(to, cluster)
	}
	return len(to) == 0
}

// keepMoving keeps the moves that are under way and still meant. What is abandoned is left at once
// as far as enough remains. again starts those that have failed anew.
func (s *stage) keepMoving(again bool) {
	s.moves = slices.DeleteFunc(slices.Clone(s.moves), func(m api.RolloutMove) bool { return m.StartedAt == nil || m.DoneAt != nil })
	for i := range s.moves {
		m := &s.moves[i]
		m.Step = 1
		if again && m.FailedAt != nil {
			m.StartedAt, m.HealthySince, m.FailedAt = instant(s.Now), nil, nil
		}
		if _, stands := s.has[m.Cluster]; m.Leaves {
			if stands || s.wants[m.Cluster] > 0 {
				m.Step = 0 // it is wanted again
			}
			continue
		}
		over := min(s.has[m.Cluster]-s.wants[m.Cluster]-s.abandoned[m.Cluster], s.unitsOf(m))
		if over <= 0 {
			continue
		}
		s.abandoned[m.Cluster] += over
		if m.Replicas -= over; !s.Divided || m.Replicas <= 0 {
			m.Step = 0
		}
		if !s.Divided && total(s.has) > total(s.wants) {
			delete(s.has, m.Cluster)
		}
	}
	s.moves = slices.DeleteFunc(s.moves, func(m api.RolloutMove) bool { return m.Step == 0 })
}

// planned returns what is still to begin, in order.
func (s *stage) planned() (moves []api.RolloutMove) {
	successors := 0
	for i := range s.moves {
		if gains(&s.moves[i]) {
			successors++
		}
	}
	place := map[string]int{}
	for _, t := range s.Target {
		if gap := t.Units - s.has[t.Cluster]; gap > 0 {
			m := api.RolloutMove{Cluster: t.Cluster}
			if s.Divided {
				m.Replicas = gap
			}
			place[m.Cluster], m.Group = s.Group(m.Cluster)
			moves = append(moves, m)
			successors++
		}
	}
	if !s.Divided {
		left := s.left()
		for _, cluster := range left[min(successors, len(left)):] {
			m := api.RolloutMove{Cluster: cluster, Leaves: true}
			place[cluster], m.Group = s.Group(cluster)
			moves = append(moves, m)
		}
	}
	slices.SortStableFunc(moves, func(a, b api.RolloutMove) int { return cmp.Compare(place[a.Cluster], place[b.Cluster]) })
	return moves
}

// stepped divides moves into steps, after those that have begun.
func (s *stage) stepped(begun, moves []api.RolloutMove) []api.RolloutMove {
	limit := s.Rules.MaxConcurrent.Of(cmp.Or(len(s.Target), len(s.Stands)))
	step, in := int64(0), 0
	if len(begun) > 0 {
		step = 1
	}
	for i := range moves {
		m := &moves[i]
		first := i == 0
		group := first || !s.sameGroup(moves[i-1].Cluster, m.Cluster)
		if group || in == limit {
			step, in = step+1, 0
		}
		in++
		m.Step = step
		switch s.Rules.Approval {
		case api.ApprovalStep:
			m.NeedsApproval = true
		case api.ApprovalGroup:
			m.NeedsApproval = group || moves[i-1].NeedsApproval && moves[i-1].Step == step
		case api.ApprovalNone:
		}
	}
	return append(begun, moves...)
}

func (s *stage) sameGroup(a, b string) bool {
	x, _ := s.Group(a)
	y, _ := s.Group(b)
	return x == y
}

// left returns the clusters that stand and are not meant, in the order in which they are left: what
// was in motion, then group by group, in each the worst first.
func (s *stage) left() (names []string) {
	for _, seat := range slices.Backward(s.Stands) {
		_, stands := s.has[seat.Cluster]
		if _, meant := s.wants[seat.Cluster]; stands && !meant && !slices.Contains(names, seat.Cluster) {
			names = append(names, seat.Cluster)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, _ := s.Group(a)
		y, _ := s.Group(b)
		return cmp.Or(cmp.Compare(sign(s.abandoned[b]), sign(s.abandoned[a])), cmp.Compare(x, y))
	})
	return names
}

func sign(n int64) int64 { return min(n, 1) }

// leastSuccessTime is how long a step takes at least, so that what follows a decision has seen it.
const leastSuccessTime = time.Second

// look looks after a cluster whose step has begun. It is only done if that is asked for: not in the
// pass in which it began.
func (s *stage) look(m *api.RolloutMove, mayEnd bool) {
	healthy, unhealthy, since := s.health(m)
	if !healthy {
		m.HealthySince = nil
		deadline := m.StartedAt.Add(s.Rules.ProgressDeadline.Or(0))
		late := s.Rules.ProgressDeadline != "" && !s.Now.Before(deadline)
		switch {
		case m.FailedAt != nil:
		case unhealthy || late:
			m.FailedAt = instant(s.Now)
		case s.Rules.ProgressDeadline != "":
			s.soon(deadline)
		}
		return
	}
	if since.Before(*m.StartedAt) {
		since = *m.StartedAt
	}
	if since.After(s.Now) {
		since = s.Now
	}
	if m.HealthySince == nil || m.HealthySince.Before(since) {
		m.HealthySince = instant(since)
	}
	enough := m.HealthySince.Add(s.Rules.MinSuccessTime.Or(0))
	if least := m.StartedAt.Add(leastSuccessTime); enough.Before(least) {
		enough = least
	}
	if mayEnd && !s.Now.Before(enough) {
		m.DoneAt = instant(s.Now)
		return
	}
	s.soon(enough)
}

// soon notes an instant at which to look again.
func (s *stage) soon(at time.Time) {
	if s.nextAt.IsZero() || at.Before(s.nextAt) {
		s.nextAt = at
	}
}

// health returns how a cluster is whose step has begun, and since when. Reports from before that are
// about what was there earlier.
func (s *stage) health(m *api.RolloutMove) (healthy, unhealthy bool, since time.Time) {
	if m.Leaves {
		return true, false, *m.StartedAt
	}
	if s.Rules.Health == api.HealthCluster || s.Rules.Health == api.HealthAuto && len(s.Health) == 0 {
		if m.HealthySince != nil {
			since = *m.HealthySince
		} else {
			since = s.Now
		}
		return s.Online(m.Cluster), false, since
	}
	i := slices.IndexFunc(s.Health, func(h api.ClusterHealth) bool { return h.Cluster == m.Cluster })
	if i < 0 || s.Health[i].ReportedAt == nil || !s.Health[i].ReportedAt.After(*m.StartedAt) {
		return false, false, since
	}
	h := &s.Health[i]
	if h.Since != nil {
		since = *h.Since
	}
	return h.Status == api.Healthy, h.Status == api.Unhealthy, since
}

// leave leaves as much as is no longer needed: everything that is not meant, less what has to wait
// for clusters that are not done.
func (s *stage) leave() {
	waits, leaving := int64(0), map[string]bool{}
	for i := range s.moves {
		m := &s.moves[i]
		switch {
		case m.DoneAt != nil:
		case !m.Leaves:
			waits += s.unitsOf(m)
		case m.StartedAt == nil:
			leaving[m.Cluster] = true
		}
	}
	type loss struct {
		cluster string
		units   int64
	}
	var losses []loss
	sum := int64(0)
	add := func(cluster string, u int64) {
		if u > 0 && !leaving[cluster] {
			losses, sum = append(losses, loss{cluster, u}), sum+u
		}
	}
	left := s.left()
	for _, cluster := range left {
		if a := min(s.abandoned[cluster], s.has[cluster]); a > 0 {
			add(cluster, a)
		}
	}
	for _, t := range s.Target {
		add(t.Cluster, s.has[t.Cluster]-t.Units) // of a cluster that stays
	}
	for _, cluster := range left {
		add(cluster, s.has[cluster]-min(s.abandoned[cluster], s.has[cluster]))
	}
	for n := sum - waits; n > 0 && len(losses) > 0; losses = losses[1:] {
		x := min(losses[0].units, n)
		n -= x
		s.has[losses[0].cluster] -= x
	}
	for cluster, u := range s.has {
		if _, meant := s.wants[cluster]; u <= 0 && !meant {
			delete(s.has, cluster)
		}
	}
}

// advance begins the next step if it may, and says what the current one waits for.
func (s *stage) advance() {
	failures, open := s.failures(), false
	stopped := failures > int64(s.Rules.MaxFailures.Of(len(s.Target)))
	s.step = 0
	for i := range s.moves {
		m := &s.moves[i]
		if m.DoneAt == nil {
			open = true
			if !m.Failed() && (s.step == 0 || m.Step < s.step) {
				s.step = m.Step
			}
		}
	}
	if !open {
		s.moves = nil
		return
	}
	if stopped { // the step in which the first has failed is to be tried again
		failed := slices.IndexFunc(s.moves, func(m api.RolloutMove) bool { return m.Failed() })
		s.step, s.waiting = s.moves[failed].Step, api.WaitRetry
		return
	}
	if s.step == 0 { // all that remains has failed
		s.step, s.waiting = s.moves[len(s.moves)-1].Step, api.WaitHealth
		return
	}
	begins, approval := false, false
	for i := range s.moves {
		if m := &s.moves[i]; m.Step == s.step && m.StartedAt == nil {
			begins, approval = true, approval || m.NeedsApproval
		}
	}
	switch {
	case begins && approval && s.approved < s.step:
		s.waiting = api.WaitApproval
		return
	case begins:
		s.begin()
	}
	s.waiting = api.WaitSuccessTime
	for i := range s.moves {
		if m := &s.moves[i]; m.Moving() && m.HealthySince == nil {
			s.waiting = api.WaitHealth
		}
	}
}

// begin begins the current step.
func (s *stage) begin() {
	for i := range s.moves {
		m := &s.moves[i]
		if m.Step != s.step || m.StartedAt != nil {
			continue
		}
		m.StartedAt = instant(s.Now)
		if m.Leaves {
			delete(s.has, m.Cluster)
		} else {
			s.has[m.Cluster] += s.unitsOf(m)
		}
		s.look(m, false)
	}
}

func (s *stage) failures() (n int64) {
	for i := range s.moves {
		if s.moves[i].Failed() {
			n++
		}
	}
	return n
}

func (s *stage) result() Staged {
	out := Staged{Revision: s.revision}
	for _, list := range [2][]Seat{s.Target, s.Stands} {
		for _, seat := range list {
			if u, stands := s.has[seat.Cluster]; stands {
				out.Stands = append(out.Stands, Seat{seat.Cluster, u})
				delete(s.has, seat.Cluster)
			}
		}
	}
	if len(s.moves) == 0 {
		return out
	}
	out.NextAt = s.nextAt
	out.Rollout = &api.RolloutStatus{
		Revision: s.revision, StartedAt: s.startedAt, Step: s.step, TotalSteps: s.moves[len(s.moves)-1].Step,
		ApprovedStep: s.approved, WaitingFor: s.waiting, Failures: s.failures(), Moves: s.moves,
	}
	return out
}
