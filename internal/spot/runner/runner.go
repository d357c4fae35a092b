// Package runner splits workloads between the on-demand and spot nodes of every cluster with spot
// enabled: it follows the server's clusters and workloads, runs one agent for each such cluster,
// and forwards their observations.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
	"github.com/scheduler/terraform-provider-scheduler/internal/workers"
)

// Clusters accepts observations of clusters; *signal.Runner implements it.
type Clusters interface {
	ObservedSpot(cluster, uid string, status *api.SpotStatus, condition api.Condition)
}

// Workloads accepts observations of workloads; *reconcile.Reconciler implements it.
type Workloads interface {
	ReportDistributions(ctx context.Context, reports []reconcile.DistributionReport) error
}

// Authority provides the certificates that clusters trust; *certificate.Authority implements it.
type Authority interface {
	Bundle() (bundle []byte, changed <-chan struct{})
	Secret(clusterUID string) string
}

// Options of a Runner.
type Options struct {
	// Fleet holds the objects. Clusters and Workloads accept observations. All three are required.
	Fleet     *fleet.Fleet
	Clusters  Clusters
	Workloads Workloads
	// Authority and WebhookURL determine how clusters reach the webhook. Without them nothing is
	// split.
	Authority  Authority
	WebhookURL string
	// WebhookTimeout is how long API servers wait for the webhook. Zero = install.DefaultTimeout.
	WebhookTimeout time.Duration
	// ExcludeNamespaces are excluded, in addition to the system's.
	ExcludeNamespaces []string
	// Gone is called for clusters in which nothing is split anymore. It may be nil.
	Gone func(cluster string)
	// ReturnAfter is how long spot nodes must have been available again before pods return.
	ReturnAfter time.Duration
	// AdmitOnly says that another server does everything except the admission of pods: this one
	// only maintains inventories. Clusters, Workloads and Authority.Bundle are then not used.
	AdmitOnly bool
	// Kubernetes are the informers of clusters. Required.
	Kubernetes *informer.Group
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Recorder
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Runner runs the agents of clusters.
type Runner struct {
	Options
	figures *metrics
	faults  *recovery.Component
	wishes  wishes
	reports *reports
	running *workers.Group[string] // the agents

	mu     sync.Mutex
	agents map[string]*agent // by cluster
}

// New returns a Runner without agents.
func New(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Gone == nil {
		o.Gone = func(string) {}
	}
	r := &Runner{Options: o, faults: o.Faults.Component("spot"), wishes: newWishes(), reports: newReports(o.Workloads, o.Logger), agents: map[string]*agent{}}
	r.running = workers.New(r.faults, func(name string) string { return api.Key{Kind: api.KindCluster, Name: name}.String() })
	r.figures = newMetrics(r)
	return r
}

// Collectors returns the runner's metrics.
func (r *Runner) Collectors() []prometheus.Collector { return r.figures.collectors() }

// Run runs until ctx is done.
func (r *Runner) Run(ctx context.Context) error {
	select {
	case <-r.Fleet.Ready():
	case <-ctx.Done():
		return nil
	}
	subscription := r.Fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	group, ctx := errgroup.WithContext(ctx)
	if !r.AdmitOnly {
		group.Go(func() error { return r.faults.Supervise(ctx, r.reports.run) })
	}
	group.Go(func() error { return r.running.Run(ctx) })
	group.Go(func() error { return r.follow(ctx, subscription) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (r *Runner) follow(ctx context.Context, subscription *fleet.Subscription) error {
	snapshot := subscription.Snapshot()
	for _, kind := range []api.Kind{api.KindWorkload, api.KindCluster} {
		for entry := range snapshot.All(kind, "") {
			r.take(api.KeyOf(entry.Object), entry)
		}
	}
	r.deliver()
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			return err
		}
		for _, change := range batch.Changes {
			r.take(change.Key, change.New)
		}
		r.deliver()
	}
}

// take updates an object; nil means that it is gone.
func (r *Runner) take(key api.Key, now *fleet.Entry) {
	// The agent of a cluster records panics by the cluster's key.
	err := recovery.Confine(key.String(), func() error {
		switch {
		case key.Kind == api.KindWorkload && now != nil:
			r.putWorkload(now.Object)
		case key.Kind == api.KindWorkload:
			r.wishes.remove(key)
			r.reports.remove(key)
		case key.Kind == api.KindCluster && now != nil:
			r.putCluster(now.Object)
		case key.Kind == api.KindCluster:
			r.putTarget(key.Name, target{})
		}
		return nil
	})
	if p, ok := errors.AsType[*recovery.Panic](err); ok {
		r.faults.Note(p)
	}
}

func (r *Runner) putWorkload(object api.Object) {
	if w, ok := object.(*api.Workload); ok {
		r.wishes.put(w)
		if !r.AdmitOnly {
			r.reports.put(w)
		}
	}
}

// deliver passes changed requests to the agents of their clusters.
func (r *Runner) deliver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cluster := range r.wishes.changed() {
		if a := r.agents[cluster]; a != nil {
			a.ask(r.wishes.of(cluster))
		}
		r.reportUnsplit(cluster)
	}
}

// reportUnsplit reports the workloads of a cluster without an agent. The caller holds the lock.
func (r *Runner) reportUnsplit(cluster string) {
	if a := r.agents[cluster]; r.AdmitOnly || a != nil && a.target.splits() {
		return
	}
	why := "spot is not enabled for the cluster"
	if entry := r.Fleet.Snapshot().Get(api.Key{Kind: api.KindCluster, Name: cluster}); entry != nil {
		if c, ok := entry.Object.(*api.Cluster); ok && c.SpotEnabled() {
			why = "the cluster has no kubeconfig"
		}
	}
	for key := range r.wishes.of(cluster) {
		r.reports.tell(workloadKey(key), api.ClusterDistribution{
			Cluster: cluster, State: api.DistributionUnmanaged, Message: why,
		})
	}
}

func (r *Runner) putCluster(object api.Object) {
	if c, ok := object.(*api.Cluster); ok {
		t := targetOf(c)
		if r.AdmitOnly && !t.splits() {
			t = target{} // there is nothing to admit, and another server cleans up
		}
		r.putTarget(c.Metadata.Name, t)
	}
}

// putTarget replaces the agent of a cluster if its target has changed.
func (r *Runner) putTarget(name string, t target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.agents[name]
	if old == nil && t == (target{}) || old != nil && old.target == t {
		return
	}
	if old != nil {
		// What a new agent of the same cluster installs again need not be uninstalled.
		old.leave(!t.splits() || t.uid != old.target.uid)
		delete(r.agents, name)
		r.running.Stop(name)
	}
	if t != (target{}) {
		a := newAgent(r, name, t, r.wishes.of(name))
		r.agents[name] = a
		r.running.Start(name, a.run)
	}
	if !t.splits() {
		r.figures.forget(name)
		r.Gone(name)
	}
	r.reportUnsplit(name)
}

func (r *Runner) agent(name string) *agent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agents[name]
}

// Cluster returns what the webhook needs to know about a cluster; false if nothing is split.
func (r *Runner) Cluster(name string) (webhook.Cluster, bool) {
	a := r.agent(name)
	if a == nil || !a.target.splits() {
		return nil, false
	}
	return a, true
}
