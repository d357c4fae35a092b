package notify

import (
	"slices"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
)

// maxAttempts is how many deliveries are listed.
const maxAttempts = 30

// standing is how delivery to one notification stands: its status, before it is written. It outlives
// changes of the spec.
type standing struct {
	mu     sync.Mutex
	status api.NotificationStatus
	dirty  bool
	// waiting is when the first event happened that is being delivered; zero if there is none.
	waiting time.Time
	// kick holds a token if there is something to write that the worker does not know of.
	kick chan struct{}
}

func newStanding(status api.NotificationStatus) *standing {
	return &standing{status: status, kick: make(chan struct{}, 1)}
}

// standing returns the reason of the condition, and since when something waits.
func (s *standing) standing() (reason string, waiting time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := api.FindCondition(s.status.Conditions, api.ConditionDelivering); c != nil {
		reason = c.Reason
	}
	return reason, s.waiting
}

// snapshot returns the status to write, and whether it differs from what is stored.
func (s *standing) snapshot() (api.NotificationStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.dirty
}

// wrote says that a status was stored.
func (s *standing) wrote(status *api.NotificationStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = s.dirty && !same(&s.status, status)
}

func same(a, b *api.NotificationStatus) bool {
	return a.Cursor == b.Cursor && a.ObservedGeneration == b.ObservedGeneration &&
		slices.Equal(a.Attempts, b.Attempts) && slices.Equal(a.SetAside, b.SetAside) && slices.EqualFunc(a.Conditions, b.Conditions, func(x, y api.Condition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message
	})
}

// position returns the cursor; ok is false if there is none yet.
func (s *standing) position() (at history.Cursor, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := history.ParseCursor(s.status.Cursor)
	return at, err == nil
}

// passed moves the cursor.
func (s *standing) passed(to history.Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, err := history.ParseCursor(s.status.Cursor); err == nil && to.Compare(at) <= 0 {
		return
	}
	s.status.Cursor, s.dirty = to.String(), true
}

// now says how delivery stands.
func (s *standing) now(generation int64, status api.ConditionStatus, reason, message string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := api.SetCondition(&s.status.Conditions, api.Condition{Type: api.ConditionDelivering, Status: status, Reason: reason, Message: message}, at)
	s.dirty = s.dirty || changed || s.status.ObservedGeneration != generation
	s.status.ObservedGeneration = generation
}

// gone reports whether the destination has answered 410 to the spec of a generation.
func (s *standing) gone(generation int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := api.FindCondition(s.status.Conditions, api.ConditionDelivering)
	return c != nil && c.Reason == api.ReasonDestinationGone && s.status.ObservedGeneration == generation
}

// waits says since when something waits to be delivered.
func (s *standing) waits(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = since
}

// attempted adds an attempt to the list.
func (s *standing) attempted(a api.NotificationAttempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Attempts = 1
	list := slices.Clone(s.status.Attempts)
	i := indexOf(list, a.ID)
	if i >= 0 {
		a.Attempts += list[i].Attempts
		list = slices.Delete(list, i, i+1)
	}
	if j := indexOf(s.status.SetAside, a.ID); j >= 0 {
		if i < 0 {
			a.Attempts += s.status.SetAside[j].Attempts
		}
		s.status.SetAside = slices.Clone(s.status.SetAside)
		s.status.SetAside[j] = a
	}
	list = slices.Insert(list, 0, a)
	s.status.Attempts = list[:min(len(list), maxAttempts)]
	at := a.Time
	if a.Result == api.DeliveryDone {
		s.status.LastSuccessAt = &at
	} else {
		s.status.LastFailureAt = &at
	}
	s.dirty = true
}

// attempt returns an entry of the list.
func (s *standing) attempt(id string) (api.NotificationAttempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.status.Listed()
	if i := indexOf(list, id); i >= 0 {
		return list[i], true
	}
	return api.NotificationAttempt{}, false
}

// delivered reports whether a delivery is known to have succeeded: it may have been sent again on request.
func (s *standing) delivered(id string) bool {
	a, ok := s.attempt(id)
	return ok && a.Result == api.DeliveryDone
}

// settled reports whether a delivery is known to have succeeded, or to be given up.
func (s *standing) settled(id string) bool {
	a, ok := s.attempt(id)
	return ok && (a.Result == api.DeliveryDone || a.Result == api.DeliveryGivenUp)
}

func indexOf(list []api.NotificationAttempt, id string) int {
	return slices.IndexFunc(list, func(a api.NotificationAttempt) bool { return a.ID == id })
}

// setAside returns the deliveries that are set aside.
func (s *standing) setAside() []api.NotificationAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.status.SetAside)
}

// replaceAside replaces a delivery that is set aside by the next one of the same object. Without an old one, the new one is
// added; without a new one, nothing takes the place of the old one.
func (s *standing) replaceAside(old string, by *api.NotificationAttempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.status.SetAside)
	switch i := indexOf(list, old); {
	case i < 0 && by != nil:
		list = append(list, *by)
	case i >= 0 && by != nil:
		list[i] = *by
	case i >= 0:
		list = slices.Delete(list, i, i+1)
	}
	s.status.SetAside, s.dirty = list, true
}

// wake has the worker write the status.
func (s *standing) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // it is awake
	}
}
