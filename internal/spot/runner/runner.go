// Package runner splits workloads over the on-demand and spot nodes of every cluster
// that has spot enabled: it follows what the server knows of clusters and workloads,
// has one agent for each such cluster, and passes on what these observe.
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
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/keyed"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

// Clusters takes what is observed of clusters; *signal.Runner does.
type Clusters interface {
	ObservedSpot(cluster, uid string, status *api.SpotStatus, condition api.Condition)
}

// Workloads takes what is observed of workloads; *reconcile.Reconciler does.
type Workloads interface {
	ReportDistributions(ctx context.Context, reports []reconcile.DistributionReport) error
}

// Authority is what makes clusters trust the webhook; *certificate.Authority does.
type Authority interface {
	Bundle() (bundle []byte, changed <-chan struct{})
	Secret(clusterUID string) string
}

// Options of a Runner.
type Options struct {
	// Fleet tells what there is. Clusters and Workloads take what is observed. All
	// three are required.
	Fleet     *fleet.Fleet
	Clusters  Clusters
	Workloads Workloads
	// Authority and WebhookURL say how clusters reach the webhook. Without them nothing
	// is split.
	Authority  Authority
	WebhookURL string
	// ExcludeNamespaces are those, besides the system's, whose pods are left alone.
	ExcludeNamespaces []string
	// Gone is told of clusters in which nothing is split any more. Default: nobody is.
	Gone func(cluster string)
	// ReturnAfter is how long there have to be spot nodes again before pods return.
	ReturnAfter time.Duration
	// AdmitOnly says that another server does everything but the admission of pods:
	// here is only known what there is in the clusters. Clusters, Workloads and
	// Authority.Bundle are then not used.
	AdmitOnly bool
	// Kubernetes are the feeds of clusters. Required.
	Kubernetes *feed.Group
	// Faults is told of panics. Nil tells nobody.
	Faults *fault.Recorder
	// Logger. Default: discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Runner runs the agents of clusters.
type Runner struct {
	Options
	figures *figures
	faults  *fault.Component
	wishes  wishes
	reports *reports
	running *keyed.Group[string] // the agents

	mu     sync.Mutex
	agents map[string]*agent // by cluster
}

// New makes a Runner without agents.
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
	r.running = keyed.New(r.faults, func(name string) string { return api.Key{Kind: api.KindCluster, Name: name}.String() })
	r.figures = newFigures(r)
	return r
}

// Collectors are the runner's own figures.
func (r *Runner) Collectors() []prometheus.Collector { return r.figures.collectors() }

// Run splits until ctx ends.
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

// take takes in an object as it is now; nil says that it is gone.
func (r *Runner) take(key api.Key, now *fleet.Entry) {
	// The agent of a cluster remembers what it ends with by the cluster's key.
	err := fault.Confine(key.String(), func() error {
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
	if p, ok := errors.AsType[*fault.Panic](err); ok {
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

// deliver tells the agents what is asked for in their clusters by now.
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

// reportUnsplit reports on the workloads of a cluster that has no agent to do so. The
// caller holds the lock.
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

// putTarget has a cluster treated in another way than before, if it is another.
func (r *Runner) putTarget(name string, t target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.agents[name]
	if old == nil && t == (target{}) || old != nil && old.target == t {
		return
	}
	if old != nil {
		// What a new agent of the same cluster is going to install needs no removal.
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

// Cluster is what the webhook asks about a cluster; false where nothing is split.
func (r *Runner) Cluster(name string) (webhook.Cluster, bool) {
	a := r.agent(name)
	if a == nil || !a.target.splits() {
		return nil, false
	}
	return a, true
}
