package notify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/keyed"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// History is what notifications need of *history.Log.
type History interface {
	Enabled() bool
	Follow(ctx context.Context, after history.Cursor) iter.Seq2[history.Item, error]
	Read(ctx context.Context, query history.Query) (history.Page, error)
}

// Options configures a Runner. Fleet, History, Batcher and Codec are required.
type Options struct {
	Fleet   *fleet.Fleet
	History History
	// Batcher writes statuses.
	Batcher interface {
		Submit(ctx context.Context, write store.StatusWrite) (int64, error)
	}
	Codec interface {
		EncodeStatus(object api.Object) ([]byte, error)
	}
	// Network is the policy for the addresses of destinations.
	Network *netpolicy.Policy
	// Faults records panics. If nil, panics are not recorded.
	Faults *fault.Component
	// Logger receives messages. If nil, they are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Again is the backoff after a failed attempt. Default: from a second to a quarter of an hour.
	Again backoff.Backoff
	// RoundTripper replaces the network in tests.
	RoundTripper http.RoundTripper
}

// Runner delivers notifications during a term.
type Runner struct {
	options Options
	group   *keyed.Group[api.Key]
	figures *figures

	mu        sync.Mutex
	standings map[api.Key]*known
}

// known is a notification that is being delivered.
type known struct {
	uid          string
	specRevision int64
	standing     *standing
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Again == (backoff.Backoff{}) {
		o.Again = backoff.Backoff{First: time.Second, Most: 15 * time.Minute}
	}
	r := &Runner{options: o, group: keyed.New(o.Faults, api.Key.String), standings: map[api.Key]*known{}}
	r.figures = newFigures(r)
	return r
}

// Run delivers until ctx is done.
func (r *Runner) Run(ctx context.Context) error {
	select {
	case <-r.options.Fleet.Ready():
	case <-ctx.Done():
		return nil
	}
	subscription := r.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	for entry := range subscription.Snapshot().All(api.KindNotification, "") {
		r.put(entry)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.group.Run(ctx) })
	group.Go(func() error { return r.follow(ctx, subscription) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (r *Runner) follow(ctx context.Context, subscription *fleet.Subscription) error {
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			return err
		}
		for _, change := range batch.Changes {
			switch {
			case change.Key.Kind != api.KindNotification:
			case change.New == nil:
				r.remove(change.Key)
			default:
				r.put(change.New)
			}
		}
	}
}

// put begins to deliver a notification, or to deliver it in another way. Changes of the status come
// from here.
func (r *Runner) put(entry *fleet.Entry) {
	n, ok := entry.Object.(*api.Notification)
	if !ok {
		return
	}
	key := api.KeyOf(n)
	r.mu.Lock()
	k := r.standings[key]
	if k == nil || k.uid != n.Metadata.UID {
		k = &known{uid: n.Metadata.UID, standing: newStanding(n.Status)}
		r.standings[key] = k
	}
	changed := k.specRevision != entry.SpecRevision
	k.specRevision = entry.SpecRevision
	r.mu.Unlock()
	if changed {
		w := &worker{runner: r, notification: n, specRevision: entry.SpecRevision, standing: k.standing, destination: destinationOf(n)}
		r.group.Start(key, w.run)
	}
}

func (r *Runner) remove(key api.Key) {
	r.group.Stop(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.standings, key)
}

// all returns how all notifications stand.
func (r *Runner) all() []*standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*standing, 0, len(r.standings))
	for k := range maps.Values(r.standings) {
		list = append(list, k.standing)
	}
	return list
}

// object returns the present version of an object, or nil.
func (r *Runner) object(key api.Key) api.Object {
	if entry := r.options.Fleet.Snapshot().Get(key); entry != nil {
		return entry.Object
	}
	return nil
}

var (
	// ErrNotFound: there is no such notification.
	ErrNotFound = errors.New("there is no such notification")
	// ErrNoAttempt: the notification has no such attempt in its list.
	ErrNoAttempt = errors.New("there is no such attempt")
	// ErrNotKept: what was sent is no longer in the history, or no longer what the notification tells of.
	ErrNotKept = errors.New("what was sent is no longer in the history, or the notification no longer tells of it")
)

// Redeliver sends what a notification has sent before, with the same ID, and returns the attempt.
func (r *Runner) Redeliver(ctx context.Context, key api.Key, id string) (api.NotificationAttempt, error) {
	r.mu.Lock()
	k := r.standings[key]
	r.mu.Unlock()
	n, ok := r.object(key).(*api.Notification)
	if k == nil || !ok || n.Metadata.UID != k.uid {
		return api.NotificationAttempt{}, ErrNotFound
	}
	attempt, ok := k.standing.attempt(id)
	if !ok {
		return api.NotificationAttempt{}, ErrNoAttempt
	}
	d, err := r.again(ctx, n, attempt)
	if err != nil {
		return api.NotificationAttempt{}, err
	}
	to, err := newSender(n, r.options.Network, r.options.RoundTripper, r.options.Now)
	if err != nil {
		return api.NotificationAttempt{}, fmt.Errorf("send again: %w", err)
	}
	defer to.client.CloseIdleConnections()
	_ = r.attempt(ctx, destinationOf(n), to, d, k.standing, func(error) api.NotificationResult { // the attempt says it
		if attempt.Result == api.DeliveryDone {
			return api.DeliveryGivenUp
		}
		return attempt.Result
	})
	k.standing.wake()
	attempt, _ = k.standing.attempt(id)
	return attempt, nil
}

// again reads a delivery from the history.
func (r *Runner) again(ctx context.Context, n *api.Notification, attempt api.NotificationAttempt) (*delivery, error) {
	from, err := history.ParseCursor(attempt.From)
	to, err2 := history.ParseCursor(attempt.To)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	var events []event
	for query := (history.Query{After: before(from), Notices: true}); ; {
		page, err := r.options.History.Read(ctx, query)
		if gone := (*history.GoneError)(nil); errors.As(err, &gone) {
			return nil, ErrNotKept
		}
		if err != nil {
			return nil, fmt.Errorf("read what was sent: %w", err)
		}
		for _, item := range page.Items {
			if item.Gap != nil || item.Cursor.Compare(to) > 0 {
				continue
			}
			more, err := eventsOf(n, item, r.object)
			if err != nil {
				return nil, err
			}
			events = append(events, more...)
		}
		if query.After = page.Next; query.After == (history.Cursor{}) || query.After.Compare(to) >= 0 {
			break
		}
	}
	if len(events) == 0 {
		return nil, ErrNotKept
	}
	all := deliveries(n, destinationOf(n).each, events)
	if !destinationOf(n).each {
		all = append(all, all[0].byObject()...)
	}
	if i := slices.IndexFunc(all, func(d *delivery) bool { return d.id == attempt.ID }); i >= 0 {
		return all[i], nil
	}
	return nil, ErrNotKept
}
