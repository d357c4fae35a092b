package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
)

const (
	// maxAside is how many deliveries are set aside at most. If one more is refused, everything waits.
	maxAside = 100
	// asidePage is how many records of an object are read at once.
	asidePage = 20
	// brokenTries is how often a delivery is tried that breaks the destination, before it counts as refused.
	brokenTries = 5
	// longestPace is the longest pause after a refusal, before something else is tried.
	longestPace = 10 * time.Second
)

// aside is an object of which the destination refuses a delivery. What comes after it for this object waits in the history;
// here is only where that begins and ends.
type aside struct {
	object api.Key
	// attempt is the delivery that is due, as it is in the status.
	attempt api.NotificationAttempt
	// queue has the delivery that is due, and some that come after it. It is empty if they have not been read.
	queue []*delivery
	// found says that the delivery has been read, and what comes next is after through.
	found   bool
	through history.Cursor
	// skipped is the last of what has been left out, because it comes after the delivery.
	skipped  history.Cursor
	failures int
	// began is when the delivery that is due was first tried by this worker; next is when it is tried again.
	began, next time.Time
}

// refuses reports whether an answer is about what was sent, and not about the state of the destination. A receiver that
// breaks on one event answers 500 every time.
func refuses(err error, tries int) bool {
	answer, ok := errors.AsType[*answerError](err)
	if !ok {
		return false
	}
	switch answer.code {
	case http.StatusRequestTimeout, http.StatusGone, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	case http.StatusInternalServerError:
		return tries >= brokenTries
	}
	return answer.code >= 400 && answer.code < 500
}

// takeUpAside takes up what was set aside before. It is false if ctx is done.
func (w *worker) takeUpAside(ctx context.Context) bool {
	w.aside = map[api.Key]*aside{}
	skipped, _ := w.standing.position()
	for _, attempt := range w.standing.setAside() {
		for failures := 1; ; failures++ {
			a, err := w.asideOf(ctx, attempt)
			if err == nil && a != nil && w.aside[a.object] == nil {
				a.skipped = skipped
				w.aside[a.object] = a
				w.refusal = attempt.Message
				break
			}
			if err == nil {
				w.standing.replaceAside(attempt.ID, nil)
				break
			}
			if ctx.Err() != nil {
				return false
			}
			w.unreadable(err)
			backoff.Wait(ctx, w.runner.options.Again.After(failures))
		}
	}
	return true
}

// asideOf finds out which object a delivery is of. It is nil if the history no longer has it.
func (w *worker) asideOf(ctx context.Context, attempt api.NotificationAttempt) (*aside, error) {
	from, err := history.ParseCursor(attempt.From)
	to, err2 := history.ParseCursor(attempt.To)
	if errors.Join(err, err2) != nil {
		return nil, nil //nolint:nilerr // it was not written by this program
	}
	page, err := w.runner.options.History.Read(ctx, history.Query{After: before(from), Notices: true, Limit: 1})
	if gone, ok := errors.AsType[*history.GoneError](err); ok {
		w.missed("the history no longer has what was set aside", "since", attempt.From, "kept_since", gone.Kept.String())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 || page.Items[0].Gap != nil || page.Items[0].Cursor != from {
		w.missed("the history no longer has what was set aside", "since", attempt.From)
		return nil, nil
	}
	recorded, err := history.DecodeEvent(page.Items[0])
	if err != nil {
		w.missed("a part of the history is damaged", "error", err)
		return nil, nil // it will not become readable
	}
	return &aside{object: recorded.Entry.Object.Key, attempt: attempt, through: to}, nil
}

// before returns the cursor after which a record is the first one.
func before(at history.Cursor) history.Cursor {
	at.Number--
	return at
}

// setAside sets a delivery aside, which is about one object.
func (w *worker) setAside(d *delivery, err error) {
	a := &aside{object: d.object(), attempt: w.entry(d), queue: []*delivery{d}, through: last(d.events), failures: 1, next: time.Now().Add(w.again(1, err))}
	w.aside[a.object] = a
	w.standing.replaceAside("", &a.attempt)
	w.refusal = describe(err)
}

// entry returns how a delivery is in the status.
func (w *worker) entry(d *delivery) api.NotificationAttempt {
	if a, ok := w.standing.attempt(d.id); ok {
		return a
	}
	return api.NotificationAttempt{
		ID: d.id, Time: w.runner.options.Now().UTC(), Result: api.DeliveryRefused, Events: int64(len(d.events)),
		Message: "waits for a delivery about the same object", From: d.events[0].first.String(), To: last(d.events).String(),
	}
}

// waitsBehind reports whether events of an object must wait, because something before them is set aside. upTo is the last of them.
func (w *worker) waitsBehind(object api.Key, upTo history.Cursor) bool {
	a := w.aside[object]
	if a != nil && upTo.Compare(a.skipped) > 0 {
		a.skipped = upTo
	}
	return a != nil
}

// withoutAside returns the events that need not wait.
func (w *worker) withoutAside(events []event) []event {
	if len(w.aside) == 0 {
		return events
	}
	var left []event
	for i := range events {
		if !w.waitsBehind(events[i].object.Key, events[i].last) {
			left = append(left, events[i])
		}
	}
	return left
}

// dueAside returns what is set aside and to be tried next, or nil.
func (w *worker) dueAside() *aside {
	var first *aside
	for _, a := range w.aside {
		if first == nil || a.next.Before(first.next) {
			first = a
		}
	}
	return first
}

// asideTimer fires when something that is set aside is to be tried. It is nil if there is nothing.
func (w *worker) asideTimer() <-chan time.Time {
	if a := w.dueAside(); a != nil {
		return time.After(time.Until(a.next))
	}
	return nil
}

// hasten goes on at once with what was sent again on request.
func (w *worker) hasten() {
	for _, a := range w.aside {
		if w.standing.delivered(a.attempt.ID) {
			a.next = time.Time{}
		}
	}
}

// retryAside goes on with what is set aside, if it is due. It makes one attempt, or reads one page of the history, so that
// nothing else waits for long. It is false if ctx is done, or the destination is gone.
func (w *worker) retryAside(ctx context.Context, to *sender) bool {
	a := w.dueAside()
	if a == nil || time.Until(a.next) > 0 {
		return true
	}
	if len(a.queue) == 0 {
		if err := w.readAside(ctx, a); err != nil {
			if ctx.Err() != nil {
				return false
			}
			w.unreadable(err)
			a.failures++
			a.next = time.Now().Add(w.runner.options.Again.After(a.failures))
		}
		return true
	}
	d := a.queue[0]
	if !w.standing.settled(d.id) {
		result := api.DeliveryRefused
		if a.began.IsZero() {
			a.began = w.runner.options.Now()
		}
		if w.expired(d, a.began) {
			result = api.DeliveryGivenUp
		}
		err := w.runner.attempt(ctx, w.destination, to, d, w.standing, func(error) api.NotificationResult { return result })
		if ctx.Err() != nil || isGone(err) {
			w.goneIf(err)
			return false
		}
		if err != nil && result == api.DeliveryRefused {
			a.failures++
			a.next = time.Now().Add(w.again(a.failures, err))
			w.refusal = describe(err)
			w.stands(nil)
			w.saveSometimes(ctx)
			return true
		}
	}
	a.failures, a.began, a.queue = 0, time.Time{}, a.queue[1:]
	w.replaceAside(a)
	w.saveSometimes(ctx)
	return true
}

// replaceAside puts the delivery that is now due into the status, if it is known. If not, the one before stays there, and is
// known to be done, until the next one is found.
func (w *worker) replaceAside(a *aside) {
	if len(a.queue) == 0 {
		return
	}
	next := w.entry(a.queue[0])
	w.standing.replaceAside(a.attempt.ID, &next)
	a.attempt = next
}

// readAside reads the delivery that is due, or what comes after it, or finds that nothing else waits.
func (w *worker) readAside(ctx context.Context, a *aside) error {
	query := history.Query{Kind: a.object.Kind, Namespace: a.object.Namespace, Name: a.object.Name, Notices: true, Limit: asidePage}
	until := a.skipped
	if !a.found {
		from, err := history.ParseCursor(a.attempt.From)
		if err != nil {
			return fmt.Errorf("the position of what is set aside: %w", err)
		}
		query.After, until = before(from), a.through
	} else {
		query.After = a.through
	}
	if a.found && a.through.Compare(a.skipped) >= 0 || a.skipped == (history.Cursor{}) && w.standing.settled(a.attempt.ID) {
		delete(w.aside, a.object)
		w.standing.replaceAside(a.attempt.ID, nil)
		w.stands(nil)
		return nil
	}
	var events []event
	for more := true; more; {
		page, err := w.runner.options.History.Read(ctx, query)
		if gone, ok := errors.AsType[*history.GoneError](err); ok {
			w.missed("the history no longer has what was set aside", "since", query.After.String(), "kept_since", gone.Kept.String())
			a.found, a.through = true, gone.Kept
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what is set aside: %w", err)
		}
		for _, item := range page.Items {
			if item.Cursor.Compare(until) > 0 {
				page.Next = history.Cursor{}
				break
			}
			if item.Gap != nil {
				w.missed("the history has a gap", "gap", item.Gap.Reason)
				continue
			}
			told, err := eventsOf(w.notification, item, w.runner.object)
			if err != nil {
				w.missed("a part of the history is damaged", "error", err)
			}
			events = append(events, told...)
		}
		if query.After = page.Next; page.Next == (history.Cursor{}) || page.Next.Compare(until) >= 0 {
			query.After = until
			more = false
		}
		// A delivery is read as a whole, and what comes after it by pages.
		more = more && !a.found
	}
	a.through = query.After
	if len(events) > 0 {
		a.queue = deliveries(w.notification, w.destination.each, events)
	}
	if !a.found {
		a.found = true
		for n, d := range a.queue {
			if d.id == a.attempt.ID {
				a.queue = a.queue[n:]
				return nil
			}
		}
	}
	w.replaceAside(a)
	return nil
}
