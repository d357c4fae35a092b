package declare

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/supply"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Options are what a Runner needs. All are required.
type Options struct {
	Fleet *fleet.Fleet
	// Decisions waits until the decisions that follow from a revision are visible.
	Decisions interface {
		Settle(ctx context.Context, revision int64) error
	}
	// Store writes while this server leads.
	Store interface {
		Declare(ctx context.Context, writes ...store.Write) (int64, error)
	}
	Codec interface {
		EncodeSpec(object api.Object) ([]byte, error)
	}
	Logger *slog.Logger
	Now    func() time.Time
}

// Runner declares clusters during a term.
type Runner struct{ options Options }

// New returns a Runner.
func New(options Options) *Runner { return &Runner{options} }

// again is the backoff after a failed write.
var again = backoff.Backoff{First: 250 * time.Millisecond, Most: time.Minute}

// Run declares clusters until ctx is done.
func (r *Runner) Run(ctx context.Context) error {
	f := &following{subscription: r.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})}
	f.begin()
	for failures := 0; ctx.Err() == nil; {
		more, err := r.step(ctx, f)
		var conflict *store.ConflictError
		switch {
		case errors.Is(err, store.ErrFenced):
			<-ctx.Done() // the term is over
			return nil
		case errors.As(err, &conflict): // somebody was faster, which will arrive
			backoff.Wait(ctx, again.First)
			continue
		}
		if err != nil && ctx.Err() == nil {
			failures++
			r.options.Logger.Error("clusters could not be declared; it is retried", "error", err)
			backoff.Wait(ctx, again.After(failures))
			continue
		}
		failures = 0
		if more {
			continue
		}
		for f.changed = false; !f.changed; {
			if err := f.next(ctx); err != nil {
				return nil //nolint:nilerr // it was canceled
			}
		}
	}
	return nil
}

// step declares and removes what follows from the present state, and reports whether it wrote
// anything. Decisions follow the fleet: while a cluster is real already and not decided on, another
// one seems to be missing. So only that is done which follows from a state and still follows from
// one with all decisions that follow from the first.
func (r *Runner) step(ctx context.Context, f *following) (wrote bool, err error) {
	declare, remove := f.plan()
	if len(declare)+len(remove) == 0 {
		return false, nil
	}
	if err := r.options.Decisions.Settle(ctx, f.snapshot().Revision()); err != nil {
		return false, err
	}
	for settled := r.options.Fleet.Snapshot().Revision(); f.snapshot().Revision() < settled; {
		if err := f.next(ctx); err != nil {
			return false, err
		}
	}
	still, removable := f.plan()
	for _, c := range still {
		if slices.ContainsFunc(declare, func(x *api.Cluster) bool { return x.Metadata.Name == c.Metadata.Name }) {
			failed := r.declare(ctx, c)
			wrote, err = wrote || failed == nil, errors.Join(err, failed)
		}
	}
	for _, name := range removable {
		if slices.Contains(remove, name) {
			failed := r.remove(ctx, f, name)
			wrote, err = wrote || failed == nil, errors.Join(err, failed)
		}
	}
	return wrote, err
}

// declare creates a cluster, unless there is one of its name.
func (r *Runner) declare(ctx context.Context, c *api.Cluster) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand crashes the program instead
	now := r.options.Now().UTC()
	m := &c.Metadata
	m.UID, m.Generation, m.CreatedAt, m.ModifiedAt = hex.EncodeToString(id[:]), 1, &now, &now
	if err := c.Validate().Err(); err != nil {
		return fmt.Errorf("%s for %s: %w", api.KeyOf(c), c.Spec.Demand.Of(), err)
	}
	value, err := r.options.Codec.EncodeSpec(c)
	if err != nil {
		return err
	}
	return r.write(ctx, store.Write{Key: api.KeyOf(c), Part: store.Spec, Value: value, Expect: 0}, c)
}

// remove deletes a declared cluster as it was seen.
func (r *Runner) remove(ctx context.Context, f *following, name string) error {
	key := api.Key{Kind: api.KindCluster, Name: name}
	entry := f.snapshot().Get(key)
	if entry == nil {
		return nil
	}
	c, ok := entry.Object.(*api.Cluster)
	if !ok {
		return nil
	}
	return r.write(ctx, store.Write{Key: key, Part: store.Spec, Expect: entry.SpecRevision}, c,
		store.Write{Key: key, Part: store.Status, Expect: entry.StatusRevision, CheckOnly: true})
}

// write makes a write, and waits until the fleet shows it.
func (r *Runner) write(ctx context.Context, w store.Write, c *api.Cluster, also ...store.Write) error {
	revision, err := r.options.Store.Declare(ctx, append([]store.Write{w}, also...)...)
	if err != nil {
		return err
	}
	r.options.Logger.Info("wrote a declared cluster", "removed", w.Value == nil, "cluster", c.Metadata.Name, "for", c.Spec.Demand.Of().String(), "revision", revision)
	_, err = r.options.Fleet.WaitRevision(ctx, revision)
	return err
}

// following knows of the fleet what is declared for whom.
type following struct {
	subscription *fleet.Subscription
	open         map[api.Key]struct{} // objects that demand something
	made         map[string]struct{}  // clusters that were made for a demand
	changed      bool                 // something that matters has changed
}

func (f *following) snapshot() *fleet.Snapshot { return f.subscription.Snapshot() }

// begin takes in the present state.
func (f *following) begin() {
	f.open, f.made = map[api.Key]struct{}{}, map[string]struct{}{}
	for _, kind := range []api.Kind{api.KindPlacement, api.KindWorkload, api.KindCluster} {
		for entry := range f.snapshot().All(kind, "") {
			f.see(api.KeyOf(entry.Object), entry.Object)
		}
	}
}

// next takes in the next changes.
func (f *following) next(ctx context.Context) error {
	batch, err := f.subscription.Next(ctx)
	if err != nil {
		return err
	}
	if batch.Passed {
		f.begin()
		f.changed = true
		return nil
	}
	for _, change := range batch.Changes {
		if _, object := change.Objects(); f.see(change.Key, object) {
			f.changed = true
		}
	}
	return nil
}

// see takes in a version of an object, nil if it is gone, and reports whether it matters.
func (f *following) see(key api.Key, object api.Object) (matters bool) {
	switch key.Kind {
	case api.KindPropagationPolicy:
		return len(f.open) > 0
	case api.KindCluster:
		_, before := f.made[key.Name]
		delete(f.made, key.Name)
		if c, ok := object.(*api.Cluster); ok && supply.MadeFor(c) {
			f.made[key.Name] = struct{}{}
			return true
		}
		return before
	case api.KindPlacement, api.KindWorkload:
		_, before := f.open[key]
		delete(f.open, key)
		if object != nil {
			if o, ok := supply.OpenOf(object, f.get); ok && o.Demand != nil {
				f.open[key] = struct{}{}
				return true
			}
		}
		return before || len(f.made) > 0
	default:
		return false
	}
}

func (f *following) get(key api.Key) api.Object {
	if entry := f.snapshot().Get(key); entry != nil {
		return entry.Object
	}
	return nil
}

// plan returns the clusters to declare, and the names of those to remove.
func (f *following) plan() (declare []*api.Cluster, remove []string) {
	var open []supply.Open
	for key := range f.open {
		if object := f.get(key); object != nil {
			if o, ok := supply.OpenOf(object, f.get); ok {
				open = append(open, o)
			}
		}
	}
	var clusters []*api.Cluster
	for name := range f.made {
		if c, ok := f.get(api.Key{Kind: api.KindCluster, Name: name}).(*api.Cluster); ok {
			clusters = append(clusters, c)
		}
	}
	return supply.Plan(open, clusters, func(name string) bool {
		return f.get(api.Key{Kind: api.KindCluster, Name: name}) != nil
	})
}
