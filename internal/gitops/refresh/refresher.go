// Package refresh tells Argo CD and flux-operator in a Kubernetes cluster to ask again when a
// decision has changed, which they otherwise do every few minutes. It sets the annotations for that
// on the ApplicationSets and ResourceSetInputProviders whose spec asks for the decision.
//
// Decisions do not wait for it. What could not be told is tried again, and if this server stops
// meanwhile, the next leader tells all of them once.
package refresh

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
)

// Options of a Refresher. Fleet and Open are required.
type Options struct {
	Fleet *fleet.Fleet
	// Open connects to the cluster of the controllers.
	Open func() (_ dynamic.Interface, disconnect func(), err error)
	// Faults records panics. If nil, they are not recorded.
	Faults *fault.Component
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Refresher tells the controllers.
type Refresher struct {
	Options
	figures *figures
	tables  map[controller]*feed.Table[asking]
	link    *hub.Link
	telling *hub.Work[name]
	index   atomic.Pointer[index]

	indexing sync.Mutex          // held while the index is made
	listed   map[controller]bool // guarded by indexing
}

// New returns a Refresher. Run makes it work.
func New(o Options) *Refresher {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Refresher{Options: o, figures: newFigures(), tables: map[controller]*feed.Table[asking]{}, listed: map[controller]bool{}}
	r.telling = hub.NewWork(o.Faults, name.String, r.tell, func(n name, err error) {
		_, message := kube.Describe("the annotation", err)
		r.Logger.Warn("a GitOps controller could not be told that a decision has changed; it is tried again", "object", n.String(), "error", message)
	})
	r.link = hub.NewLink(hub.Options{
		Open: o.Open, Faults: o.Faults,
		Note: func(failure string) {
			if failure == "" {
				o.Logger.Info("GitOps controllers are told about decisions again")
				return
			}
			o.Logger.Warn("GitOps controllers are not told about decisions", "error", failure)
		},
	})
	for c, resource := range resources {
		r.tables[c] = tableOf(c)
		// A cluster with only one of the controllers is not a failure.
		hub.Watch(r.link, r.tables[c], hub.Resource{GroupVersionResource: resource, Optional: true}, func() { r.reindex(c) })
	}
	r.figures.refresher = r
	r.index.Store(newIndex(nil))
	return r
}

// Run tells the controllers until ctx is done.
func (r *Refresher) Run(ctx context.Context) error {
	changes := r.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true}) // before the objects are listed, so that none is missed
	return r.link.Run(ctx, r.telling.Run, func(ctx context.Context) error { return r.follow(ctx, changes) })
}

// reindex makes the index anew when objects of a controller have changed. The first time, all of them
// are told: the previous leader may not have told them everything.
func (r *Refresher) reindex(c controller) {
	r.indexing.Lock()
	defer r.indexing.Unlock()
	var all []asking
	for _, table := range r.tables {
		table.View(func(rows map[feed.UID]asking) {
			for _, a := range rows {
				all = append(all, a)
			}
		})
	}
	x := newIndex(all)
	r.index.Store(x)
	if version, _ := r.tables[c].State(); version == 0 {
		return
	}
	if r.listed[c] {
		return
	}
	r.listed[c] = true
	for n := range x.names {
		if n.controller == c {
			r.telling.Due(n)
		}
	}
}

// follow tells the objects that ask for a decision when it changes.
func (r *Refresher) follow(ctx context.Context, changes *fleet.Subscription) error {
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx is done: an unbounded subscription has no other error
		}
		x := r.index.Load()
		for _, change := range batch.Changes {
			if change.Key.Kind != api.KindPlacement && change.Key.Kind != api.KindWorkload {
				continue
			}
			for n := range x.changed(change.Objects()) {
				r.telling.Due(n)
			}
		}
	}
}

// tell makes a controller ask again.
func (r *Refresher) tell(ctx context.Context, n name) error {
	err := r.patch(ctx, n)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		r.figures.count(n.controller, "gone") // and does not ask any more
		return nil
	case err != nil:
		r.figures.count(n.controller, "failed")
	default:
		r.figures.count(n.controller, "told")
	}
	return err
}

// patch sets the annotation that makes a controller ask.
func (r *Refresher) patch(ctx context.Context, n name) error {
	// Argo CD removes its annotation only after a refresh that succeeded, and sees it only when it is
	// added.
	patches := []string{
		`{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":null}}}`,
		`{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":"true"}}}`,
	}
	if n.controller == flux {
		patches = []string{fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, r.Now().UTC().Format(time.RFC3339Nano))}
	}
	for _, patch := range patches {
		ctx, cancel := hub.Within(ctx)
		_, err := r.link.Client().Resource(resources[n.controller]).Namespace(n.namespace).
			Patch(ctx, n.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: hub.FieldManager})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// Failure returns why controllers are not told, or nil.
func (r *Refresher) Failure() error { return r.link.Failure() }
