package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	// maxEvents is how many events are taken at once, and so kept in memory for a notification.
	maxEvents = 200
	// ahead is how many items of the history are read ahead.
	ahead = 64
	// skipped is after how many items that it does not tell of the cursor moves.
	skipped = 500
	// saveInterval is the shortest time between two writes of the status.
	saveInterval = time.Second
)

// worker delivers one version of a notification.
type worker struct {
	runner       *Runner
	notification *api.Notification
	specRevision int64
	standing     *standing
	destination  *destination

	failures int // consecutive
	saved    time.Time
	// aside is what the destination refuses, by object; refusal says why it last did.
	aside   map[api.Key]*aside
	refusal string
}

// run delivers until ctx is done.
func (w *worker) run(ctx context.Context) error {
	defer w.saveLast(ctx)
	if _, ok := w.standing.position(); !ok {
		w.standing.passed(history.Cursor{Revision: w.specRevision})
	}
	generation, now := w.notification.Metadata.Generation, w.runner.options.Now()
	switch {
	case !w.runner.options.History.Enabled():
		w.standing.now(generation, api.ConditionFalse, api.ReasonNoHistory, "this server keeps no history, from which notifications are made: it is turned off in its configuration", now)
	case w.notification.Spec.Paused:
		w.standing.now(generation, api.ConditionFalse, api.ReasonPaused, "the notification is paused", now)
	case w.standing.gone(generation):
	case w.destination == nil: // validation does not let that be
	default:
		return w.deliver(ctx)
	}
	w.rest(ctx)
	return nil
}

// rest writes the status when it changes, until ctx is done.
func (w *worker) rest(ctx context.Context) {
	for w.save(ctx); ctx.Err() == nil; {
		wait := time.Hour
		if _, dirty := w.standing.snapshot(); dirty {
			wait = saveInterval
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.standing.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		w.save(ctx)
	}
}

// followed is a part of the history.
type followed struct {
	events []event
	to     history.Cursor
}

// deliver delivers what happens, until ctx is done or the destination is gone.
func (w *worker) deliver(ctx context.Context) error {
	to, err := newSender(w.notification, w.runner.options.Network, w.runner.options.RoundTripper, w.runner.options.Now)
	if err != nil {
		w.standing.now(w.notification.Metadata.Generation, api.ConditionFalse, api.ReasonDeliveryFails, err.Error(), w.runner.options.Now())
		w.rest(ctx)
		return nil
	}
	defer to.client.CloseIdleConnections()
	if !w.takeUpAside(ctx) {
		return nil
	}
	w.stands(nil)
	following, stop := context.WithCancel(ctx)
	parts := make(chan followed, ahead)
	var reading sync.WaitGroup
	reading.Go(func() { w.follow(following, parts) })
	w.save(ctx)
	for ctx.Err() == nil && w.step(ctx, to, parts) {
	}
	stop()
	reading.Wait()
	w.rest(ctx) // the destination is gone
	return nil
}

// step delivers what has happened since, and reports whether to go on.
func (w *worker) step(ctx context.Context, to *sender, parts <-chan followed) bool {
	events, upTo, ok := w.gather(ctx, to, parts)
	if !ok {
		return false
	}
	if events = w.withoutAside(events); len(events) > 0 {
		defer w.standing.waits(time.Time{})
		for _, d := range deliveries(w.notification, w.destination.each, events) {
			w.standing.waits(d.events[0].time)
			if !w.tell(ctx, to, d) {
				return false
			}
			if d.done != (history.Cursor{}) {
				w.standing.passed(d.done)
			}
			w.saveSometimes(ctx)
		}
	}
	w.standing.passed(upTo)
	w.saveSometimes(ctx)
	return true
}

// tell delivers, or sets aside what the destination refuses. It is false if ctx is done, or the destination is gone.
func (w *worker) tell(ctx context.Context, to *sender, d *delivery) bool {
	parts := d.byObject()
	if len(parts) == 1 && w.waitsBehind(d.object(), last(d.events)) {
		return true
	}
	err := w.deliverOne(ctx, to, d)
	switch {
	case err == nil:
		return true
	case !errors.Is(err, errRefused):
		return false
	case len(parts) > 1: // by itself, most of it will be accepted
		for _, part := range parts {
			if !w.tell(ctx, to, part) {
				return false
			}
		}
		return true
	}
	w.setAside(d, err)
	w.stands(nil)
	w.saveSometimes(ctx)
	return w.pause(ctx, to, d, min(w.runner.options.Again.After(w.failures), longestPace))
}

// gather waits for events, and for others that are sent with them. It is not ok if ctx is done, or the destination is gone.
func (w *worker) gather(ctx context.Context, to *sender, parts <-chan followed) (events []event, upTo history.Cursor, ok bool) {
	settle, _ := w.notification.Spec.Settle.Parse() // it was validated
	var settled <-chan time.Time
	for {
		var save <-chan time.Time
		if _, dirty := w.standing.snapshot(); dirty {
			save = time.After(saveInterval)
		}
		select {
		case part := <-parts:
			events, upTo = append(events, part.events...), part.to
		case <-settled:
			return events, upTo, true
		case <-save:
			w.save(ctx)
			continue
		case <-w.standing.kick:
			w.hasten()
			w.save(ctx)
			continue
		case <-w.asideTimer():
			if !w.retryAside(ctx, to) {
				return nil, upTo, false
			}
			continue
		case <-ctx.Done():
			return nil, upTo, false
		}
		switch {
		case len(events) >= maxEvents, len(events) == 0:
			return events, upTo, true
		case settled == nil && settle > 0:
			settled = time.After(settle)
		case settle <= 0 && len(parts) == 0:
			return events, upTo, true
		}
	}
}

// follow reads the history.
func (w *worker) follow(ctx context.Context, parts chan<- followed) {
	at, _ := w.standing.position()
	var last history.Cursor // that was passed on
	send := func(part followed) bool {
		last = part.to
		select {
		case parts <- part:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for failures := 1; ctx.Err() == nil; failures++ {
		passed := 0
		for item, err := range w.runner.options.History.Follow(ctx, at) {
			if gone, ok := errors.AsType[*history.GoneError](err); ok {
				w.missed("the history no longer has what was to be told", "since", at.String(), "kept_since", gone.Kept.String())
				at = gone.Kept
				break
			}
			if err != nil {
				w.unreadable(err)
				break
			}
			failures, at = 1, item.Cursor
			var events []event
			if item.Gap != nil {
				w.missed("the history has a gap", "gap", item.Gap.Reason)
			} else if events, err = eventsOf(w.notification, item, w.runner.object); err != nil {
				w.missed("a part of the history is damaged", "error", err)
			}
			if passed++; len(events) > 0 || passed >= skipped {
				passed = 0
				if !send(followed{events, at}) {
					return
				}
			}
		}
		if at.Compare(last) > 0 && !send(followed{to: at}) {
			return
		}
		backoff.Wait(ctx, w.runner.options.Again.After(failures))
	}
}

// missed says that something cannot be told.
func (w *worker) missed(why string, more ...any) {
	w.runner.figures.missed.Inc()
	w.runner.options.Logger.Warn("a notification may not tell everything", append([]any{"notification", api.KeyOf(w.notification).Path(), "reason", why}, more...)...)
}

// unreadable says that the history could not be read.
func (w *worker) unreadable(err error) {
	w.runner.options.Logger.Warn("the history could not be read for a notification; it is retried", "notification", api.KeyOf(w.notification).Path(), "error", err)
}

// errRefused: the destination refuses a delivery.
var errRefused = errors.New("refused")

// deliverOne delivers until it is done or given up. The error wraps errRefused if something else can be delivered instead; if not,
// ctx is done, or the destination is gone.
func (w *worker) deliverOne(ctx context.Context, to *sender, d *delivery) error {
	began := w.runner.options.Now()
	for tries := 1; ctx.Err() == nil; tries++ {
		expired := w.expired(d, began)
		refused := func(err error) bool {
			return !expired && w.destination.divisible && len(w.aside) < maxAside && refuses(err, tries)
		}
		err := w.runner.attempt(ctx, w.destination, to, d, w.standing, func(err error) api.NotificationResult {
			switch {
			case expired:
				return api.DeliveryGivenUp
			case refused(err):
				return api.DeliveryRefused
			}
			return api.DeliveryFailed
		})
		if err == nil {
			w.failures = 0
			w.stands(nil)
			return nil
		}
		if ctx.Err() != nil { // the attempt was interrupted
			return ctx.Err()
		}
		if w.goneIf(err) {
			return err
		}
		w.failures++
		if refused(err) {
			return fmt.Errorf("%w: %w", errRefused, err)
		}
		w.stands(err)
		w.saveSometimes(ctx)
		switch {
		case !w.pause(ctx, to, d, w.again(w.failures, err)):
			return err
		case expired, w.standing.delivered(d.id): // it was sent again on request
			return nil
		}
	}
	return ctx.Err()
}

// lateTime is how long a delivery is tried at least, although it is late: because the notification was paused, or the server away.
const lateTime = time.Minute

// expired reports whether a delivery that has been tried since a time is given up if it fails.
func (w *worker) expired(d *delivery, began time.Time) bool {
	retry, _ := w.notification.Spec.RetryFor.Parse() // it was validated
	now := w.runner.options.Now()
	return now.Sub(d.since()) >= retry && now.Sub(began) >= min(retry, lateTime)
}

// again returns how long to wait after a number of consecutive failures, not the same for everything.
func (w *worker) again(failures int, err error) time.Duration {
	wait := w.runner.options.Again.After(failures)
	wait += time.Duration(rand.Int64N(int64(wait)/5 + 1))
	if answer, ok := errors.AsType[*answerError](err); ok {
		wait = max(wait, answer.after)
	}
	return wait
}

// stands says how delivery stands. err is why it fails at the moment, if it does.
func (w *worker) stands(err error) {
	status, reason, message := api.ConditionTrue, api.ReasonDelivering, ""
	if n := len(w.aside); err != nil || n > 0 {
		status, reason = api.ConditionFalse, api.ReasonDeliveryFails
		if err != nil {
			message = describe(err)
		} else {
			message = fmt.Sprintf("what is told of %d of the objects is refused (%s): it is tried again, what follows about them waits, and everything else is delivered", n, w.refusal)
		}
	}
	w.standing.now(w.notification.Metadata.Generation, status, reason, message, w.runner.options.Now())
}

// isGone reports whether the destination has answered that it is gone.
func isGone(err error) bool {
	answer, ok := errors.AsType[*answerError](err)
	return ok && answer.code == http.StatusGone
}

// goneIf says that nothing more is sent, if the destination is gone.
func (w *worker) goneIf(err error) bool {
	if isGone(err) {
		w.standing.now(w.notification.Metadata.Generation, api.ConditionFalse, api.ReasonDestinationGone, "the destination answered 410 (Gone): nothing more is sent until the notification is written again", w.runner.options.Now())
	}
	return isGone(err)
}

// pause waits after a failure of a delivery, unless it is sent again on request. Meanwhile it writes the status, and goes on
// with what is set aside. It is false if ctx is done, or the destination is gone.
func (w *worker) pause(ctx context.Context, to *sender, d *delivery, wait time.Duration) bool {
	for until := time.Now().Add(wait); ctx.Err() == nil; {
		left := time.Until(until)
		if left <= 0 || w.standing.delivered(d.id) {
			return true
		}
		if _, dirty := w.standing.snapshot(); dirty {
			left = min(left, saveInterval)
		}
		timer := time.NewTimer(left)
		select {
		case <-w.standing.kick:
			w.hasten()
		case <-timer.C:
		case <-w.asideTimer():
			if !w.retryAside(ctx, to) {
				timer.Stop()
				return false
			}
		case <-ctx.Done():
		}
		timer.Stop()
		w.saveSometimes(ctx)
	}
	return false
}

// attempt makes one attempt, and adds it to the list. otherwise returns its result if it fails.
func (r *Runner) attempt(ctx context.Context, destination *destination, to *sender, d *delivery, s *standing, otherwise func(error) api.NotificationResult) error {
	limited, cancel := context.WithTimeout(ctx, destination.timeout)
	defer cancel()
	began := time.Now()
	err := destination.send(limited, to, d)
	if ctx.Err() != nil && err != nil {
		return err // interrupted, which says nothing about the destination
	}
	a := api.NotificationAttempt{
		ID: d.id, Time: r.options.Now().UTC(), Result: api.DeliveryDone, Events: int64(len(d.events)),
		From: d.events[0].first.String(), To: last(d.events).String(),
	}
	if err != nil {
		a.Result, a.Message = otherwise(err), describe(err)
		if answer, ok := errors.AsType[*answerError](err); ok {
			if a.Code = int64(answer.code); answer.code == http.StatusGone {
				a.Result = api.DeliveryGone
			}
		}
	} else {
		r.figures.events.WithLabelValues(destination.name).Add(float64(len(d.events)))
	}
	s.attempted(a)
	r.figures.deliveries.WithLabelValues(destination.name, string(a.Result)).Inc()
	r.figures.seconds.WithLabelValues(destination.name).Observe(time.Since(began).Seconds())
	return err
}

// saveSometimes writes the status if that was not done just now.
func (w *worker) saveSometimes(ctx context.Context) {
	if time.Since(w.saved) >= saveInterval {
		w.save(ctx)
	}
}

// save writes the status if it has changed.
func (w *worker) save(ctx context.Context) {
	status, dirty := w.standing.snapshot()
	if !dirty {
		return
	}
	w.saved = time.Now()
	object := *w.notification
	object.Status = status
	value, err := w.runner.options.Codec.EncodeStatus(&object)
	if err == nil {
		_, err = w.runner.options.Batcher.Submit(ctx, store.StatusWrite{Key: api.KeyOf(&object), Value: value, SpecRevision: w.specRevision})
	}
	var conflict *store.ConflictError
	switch {
	case err == nil:
		w.standing.wrote(&status)
	case ctx.Err() != nil, errors.As(err, &conflict), errors.Is(err, store.ErrFenced): // whoever comes next writes it
	default:
		w.runner.options.Logger.Warn("the status of a notification could not be written; it is retried", "notification", api.KeyOf(w.notification).Path(), "error", err)
	}
}

// lastSave limits the time for the last write.
const lastSave = time.Second

// saveLast writes the status at the end, so that less is sent twice.
func (w *worker) saveLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
	defer cancel()
	w.save(ctx)
}
