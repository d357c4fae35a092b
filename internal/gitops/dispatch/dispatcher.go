// Package dispatch nominates the clusters that Workloads of Kueue may go to, by the decisions of
// placements: it is an external dispatcher of MultiKueue.
//
// A Workload follows the placement that its label names, or else that of the name of its queue. Its
// nomination changes only when the decision is known, as package gitops has it. Workloads that have
// a cluster, and those that MultiKueue does not send anywhere, are never touched.
package dispatch

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/dynamic"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
)

// Options of a Dispatcher. All but Faults and Logger are required.
type Options struct {
	Fleet *fleet.Fleet
	// Since is the revision from which on this server alone decides: what was decided before must
	// have been seen first.
	Since int64
	// Open connects to the hub.
	Open func() (_ dynamic.Interface, disconnect func(), err error)
	// Faults records panics. If nil, they are not recorded.
	Faults *fault.Component
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
}

// Dispatcher nominates clusters during a term.
type Dispatcher struct {
	options    Options
	figures    *figures
	link       *hub.Link
	workloads  *feed.Table[waiting]
	checks     *feed.Table[check]
	configs    *feed.Table[config]
	nominating *hub.Work[name]

	mu        sync.Mutex
	known     map[name]waiting          // guarded by mu: the Workloads that wait
	following map[api.Key]map[name]bool // guarded by mu: those of each placement
	changed   map[name]bool             // guarded by mu: those that have changed
	begun     bool                      // guarded by mu: all Workloads have been compared with the decisions
	workers   map[string]workers        // guarded by mu: by AdmissionCheck of MultiKueue
	wrote     map[name]waiting          // guarded by mu: the Workloads as they were written last
	kept      map[name]problem          // guarded by mu: those that are left as they are
	problems  map[problem]int           // guarded by mu: how many each problem concerns
}

// New returns a Dispatcher. Run makes it work.
func New(o Options) *Dispatcher {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Dispatcher{
		options: o, workloads: feed.NewTable(waitingOf, sameWaiting), checks: newChecks(), configs: newConfigs(),
		known: map[name]waiting{}, following: map[api.Key]map[name]bool{}, changed: map[name]bool{},
		wrote: map[name]waiting{}, kept: map[name]problem{}, problems: map[problem]int{},
	}
	d.figures = newFigures(d)
	d.nominating = hub.NewWork(o.Faults, name.String, d.nominate, d.failed)
	d.link = hub.NewLink(hub.Options{
		Open: o.Open, Faults: o.Faults,
		Note: func(failure string) {
			if failure == "" {
				o.Logger.Info("clusters are nominated for Workloads of Kueue again")
				return
			}
			o.Logger.Warn("no clusters are nominated for Workloads of Kueue", "error", failure)
		},
	})
	d.workloads.Tell(d.see)
	hub.Watch(d.link, d.workloads, hub.Resource{GroupVersionResource: workloads}, d.look)
	hub.Watch(d.link, d.checks, hub.Resource{GroupVersionResource: checks}, d.look)
	hub.Watch(d.link, d.configs, hub.Resource{GroupVersionResource: configs}, d.look)
	return d
}

// Run nominates clusters until ctx is done.
func (d *Dispatcher) Run(ctx context.Context) error {
	if _, err := d.options.Fleet.WaitRevision(ctx, d.options.Since); err != nil {
		return nil //nolint:nilerr // ctx is done
	}
	changes := d.options.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true}) // before the objects are listed, so that none is missed
	return d.link.Run(ctx, d.nominating.Run, func(ctx context.Context) error { return d.follow(ctx, changes) })
}

// see takes in changes of the Workloads. It holds the lock of the table.
func (d *Dispatcher) see(changes iter.Seq[feed.Change[waiting]]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for change := range changes {
		old, now := change.Old, change.New
		if sameWaiting(old, now) {
			continue
		}
		if old.uid != "" && d.known[old.name].uid == old.uid { // not of another Workload that has its name by now
			d.changed[old.name] = true
			delete(d.known, old.name)
			if delete(d.following[old.placement], old.name); len(d.following[old.placement]) == 0 {
				delete(d.following, old.placement)
			}
			if now.uid == "" {
				delete(d.wrote, old.name)
			}
		}
		if now.uid == "" {
			continue
		}
		d.changed[now.name] = true
		if replaced, ok := d.known[now.name]; ok {
			delete(d.following[replaced.placement], now.name)
		}
		d.known[now.name] = now
		if d.following[now.placement] == nil {
			d.following[now.placement] = map[name]bool{}
		}
		d.following[now.placement][now.name] = true
	}
}

// look compares what has changed in the hub with the decisions.
func (d *Dispatcher) look() {
	for _, state := range []func() (uint64, error){d.workloads.State, d.checks.State, d.configs.State} {
		if version, _ := state(); version == 0 {
			return
		}
	}
	now := d.readWorkers()
	d.mu.Lock()
	names := d.changed
	if !d.begun || !maps.EqualFunc(d.workers, now, workers.equal) {
		for n := range d.known {
			names[n] = true
		}
	}
	d.begun, d.workers, d.changed = true, now, map[name]bool{}
	d.mu.Unlock()
	for n := range names {
		d.consider(n)
	}
}

// readWorkers returns the clusters of each AdmissionCheck of MultiKueue.
func (d *Dispatcher) readWorkers() map[string]workers {
	clusters := map[string][]string{}
	d.configs.View(func(rows map[feed.UID]config) {
		for _, c := range rows {
			clusters[c.name] = c.clusters
		}
	})
	all := map[string]workers{}
	d.checks.View(func(rows map[feed.UID]check) {
		for _, c := range rows {
			all[c.name] = workers{config: c.config, clusters: clusters[c.config]}
		}
	})
	return all
}

// consider nominates the clusters of a Workload if they are others than those that are nominated.
func (d *Dispatcher) consider(n name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.begun {
		return
	}
	w, waits := d.known[n]
	if !waits {
		d.keep(n, problem{})
		return
	}
	p := d.plan(w)
	if d.keep(n, p.problem); p.differs(w) {
		d.nominating.Due(n)
	}
}

// follow considers the Workloads of placements that change.
func (d *Dispatcher) follow(ctx context.Context, changes *fleet.Subscription) error {
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx is done: an unbounded subscription has no other error
		}
		names := map[name]bool{}
		d.mu.Lock()
		if batch.Passed {
			for n := range d.known {
				names[n] = true
			}
		}
		for _, change := range batch.Changes {
			if change.Key.Kind == api.KindPlacement && gitops.Differ(change.Objects()) {
				maps.Copy(names, d.following[change.Key])
			}
		}
		d.mu.Unlock()
		for n := range names {
			d.consider(n)
		}
	}
}

// workers are the clusters of an AdmissionCheck, which its MultiKueueConfig has.
type workers struct {
	config   string
	clusters []string
}

func (w workers) equal(other workers) bool {
	return w.config == other.config && slices.Equal(w.clusters, other.clusters)
}

// Failure returns why no clusters are nominated, or nil.
func (d *Dispatcher) Failure() error { return d.link.Failure() }
