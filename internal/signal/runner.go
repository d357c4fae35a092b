// Package signal reads data from outside the server: the values of metrics, and which clusters are
// online. It writes them as statuses; the reconciler decides what follows from them.
package signal

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/collect"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/kubernetes"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/openstack"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// errNotFound says that a report names a cluster that does not exist.
var errNotFound = health.ErrNotFound

// Options of a Runner. All except Network, Beats, Reserved, Kubernetes, Logger and Now are
// required.
type Options struct {
	// Fleet holds the objects.
	Fleet *fleet.Fleet
	// Store writes many statuses at once, Batcher one.
	Store   Store
	Batcher Batcher
	// Codec encodes statuses.
	Codec Codec
	// Network is the policy for outbound connections.
	Network *addresspolicy.Policy
	// Beats records when clusters last reported. Default: private to this Runner.
	Beats *lastseen.Times
	// Reserved reports whether decisions hold amounts on a cluster that its next capacity report
	// releases. Default: always.
	Reserved func(cluster string) bool
	// Kubernetes are the informers of clusters. Default: private to this Runner.
	Kubernetes *informer.Group
	// Tracer makes traces of what is read. Nil = there are none.
	Tracer *tracing.Tracer
	// Logger receives changes of state and errors. If nil, they are discarded.
	Logger *slog.Logger
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Recorder
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Runner runs all signal sources.
type Runner struct {
	fleet     *fleet.Fleet
	tracker   *firstread.Tracker
	collector *collect.Collector
	monitor   *health.Monitor
	observer  *kubernetes.Observer
	clouds    *openstack.Clouds
	recorder  *recovery.Recorder
	faults    *recovery.Component
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Runner{fleet: o.Fleet, tracker: firstread.New(), recorder: o.Faults, faults: o.Faults.Component("signals")}
	w := writer{fleet: o.Fleet, store: o.Store, batcher: o.Batcher, codec: o.Codec}
	if o.Kubernetes == nil {
		o.Kubernetes = informer.NewGroup(kube.New(o.Network, nil), o.Faults.Component("kubernetes"))
	}
	r.collector = collect.New(collect.Options{Faults: o.Faults.Component("metrics"), Types: types, Network: o.Network, Writer: w, Tracker: r.tracker, Normalize: columns.Normalize, Tracer: o.Tracer, Logger: o.Logger, Now: o.Now})
	r.monitor = health.New(health.Options{Faults: o.Faults.Component("health"), Network: o.Network, Writer: w, Tracker: r.tracker, Beats: o.Beats, Reserved: o.Reserved, Tracer: o.Tracer, Logger: o.Logger, Now: o.Now})
	r.clouds = openstack.New(openstack.Options{Faults: o.Faults.Component("openstack"), Network: o.Network, Writer: w, Tracker: r.tracker, Tracer: o.Tracer, Logger: o.Logger, Now: o.Now})
	r.observer = kubernetes.New(kubernetes.Options{Faults: o.Faults.Component("kubernetes"), Informers: o.Kubernetes, Sink: r.monitor})
	return r
}

// Collectors returns the runner's metrics.
func (r *Runner) Collectors() []prom.Collector {
	return slices.Concat(r.collector.Collectors(), r.monitor.Collectors(), r.observer.Collectors(), r.clouds.Collectors())
}

// Run runs until ctx is done. It starts once the fleet is loaded: before that, providers would seem
// to be missing.
func (r *Runner) Run(ctx context.Context) error {
	select {
	case <-r.fleet.Ready():
	case <-ctx.Done():
		return nil
	}
	// A subscriber that falls behind gets the difference in one batch.
	subscription := r.fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	r.load(subscription.Snapshot())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.faults.Supervise(ctx, r.collector.Run) })
	group.Go(func() error { return r.faults.Supervise(ctx, r.monitor.Run) })
	group.Go(func() error { return r.faults.Supervise(ctx, r.observer.Run) })
	group.Go(func() error { return r.faults.Supervise(ctx, r.clouds.Run) })
	group.Go(func() error { return r.follow(ctx, subscription) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// order is the order in which objects are passed on: a metric's provider before the metric.
var order = []api.Kind{api.KindMetricsProvider, api.KindMetric, api.KindCloud, api.KindCluster}

func (r *Runner) load(snapshot *fleet.Snapshot) {
	for _, kind := range order {
		for entry := range snapshot.All(kind, "") {
			r.put(entry, entry.SpecRevision, snapshot.Revision())
		}
	}
	r.tracker.Advance(snapshot.Revision())
}

func (r *Runner) follow(ctx context.Context, subscription *fleet.Subscription) error {
	for {
		since := subscription.Snapshot().Revision() + 1
		batch, err := subscription.Next(ctx)
		if err != nil {
			return err
		}
		for _, kind := range order {
			for _, change := range batch.Changes {
				switch {
				case change.Key.Kind != kind:
				case change.New != nil:
					r.put(change.New, since, batch.Revision)
				default:
					r.remove(change.Key, since, batch.Revision)
				}
			}
		}
		r.tracker.Advance(batch.Revision)
	}
}

func (r *Runner) put(entry *fleet.Entry, since, latest int64) {
	key := api.KeyOf(entry.Object)
	if !r.faults.Go(key.String(), func() { r.pass(entry, since, latest) }) {
		r.tracker.Close(key, latest, 0) // it is not waited for until it changes again
	}
}

// pass passes an object on to the parts that use it.
func (r *Runner) pass(entry *fleet.Entry, since, latest int64) {
	switch o := entry.Object.(type) {
	case *api.Cluster:
		r.monitor.Put(o, entry.SpecRevision, since, latest)
		r.collector.Put(o, entry.SpecRevision, since, latest)
		r.observer.Put(o) // after the monitor, which uses its observations
	case *api.Cloud:
		r.clouds.Put(o, entry.SpecRevision, since, latest)
	default:
		r.collector.Put(o, entry.SpecRevision, since, latest)
	}
}

func (r *Runner) remove(key api.Key, since, latest int64) {
	r.faults.Go(key.String(), func() { r.passGone(key, since, latest) })
	r.recorder.Forget(key.String())
}

func (r *Runner) passGone(key api.Key, since, latest int64) {
	switch key.Kind {
	case api.KindCluster:
		r.observer.Remove(key.Name)
		r.collector.Remove(key, since, latest)
		r.monitor.Remove(key.Name, latest)
	case api.KindCloud:
		r.clouds.Remove(key.Name, latest)
	default:
		r.collector.Remove(key, since, latest)
	}
}

// Settle waits until every provider, metric and cluster that changed in a revision has been read or
// probed once, successfully or not, or until ctx is done. It returns the revision that shows the
// result. It waits only briefly for changes in earlier revisions, so that a provider that hangs
// does not delay unrelated writes.
func (r *Runner) Settle(ctx context.Context, revision int64) (_ int64, err error) {
	ctx, span := tracing.Start(ctx, "await signals")
	defer func() { span.End(err) }()
	// The fleet asks the store if nothing shows the revision.
	if _, err := r.fleet.WaitRevision(ctx, revision); err != nil {
		return revision, err
	}
	return r.tracker.Wait(ctx, revision)
}

// Heartbeat accepts the report of a cluster's agent. If it contains changes, these are durable when
// Heartbeat returns, and visible at the returned revision, otherwise 0. ErrNotFound: there is no
// such cluster.
func (r *Runner) Heartbeat(ctx context.Context, cluster string, hb api.Heartbeat) (revision int64, err error) {
	return r.known(ctx, cluster, func() (int64, error) { return r.monitor.Heartbeat(ctx, cluster, hb) })
}

// Report accepts amounts that somebody other than its agent reports about a cluster. They are
// durable when Report returns, and visible at the returned revision. ErrNotFound: there is no such
// cluster.
func (r *Runner) Report(ctx context.Context, cluster string, amounts health.Amounts) (revision int64, err error) {
	return r.known(ctx, cluster, func() (int64, error) { return r.monitor.Report(ctx, cluster, amounts) })
}

// ObservedSpot accepts observations of the on-demand and spot nodes of a cluster, and of the split
// of its pods; see health.Monitor. It does not wait for the write.
func (r *Runner) ObservedSpot(cluster, uid string, status *api.SpotStatus, condition api.Condition) {
	r.monitor.ObservedSpot(cluster, uid, status, condition)
}

// known calls the monitor about a cluster, and once more if the cluster was just created and the
// monitor does not know it yet.
func (r *Runner) known(ctx context.Context, cluster string, ask func() (int64, error)) (int64, error) {
	revision, err := ask()
	snapshot := r.fleet.Snapshot()
	if !errors.Is(err, errNotFound) || snapshot.Get(api.Key{Kind: api.KindCluster, Name: cluster}) == nil {
		return revision, err
	}
	if err := r.tracker.Reach(ctx, snapshot.Revision()); err != nil {
		return 0, err
	}
	return ask()
}

// ReportCloud accepts the report of a collector about a cloud; see openstack.Clouds.
func (r *Runner) ReportCloud(ctx context.Context, cloud string, report api.CloudReport) (revision int64, changed bool, err error) {
	revision, changed, err = r.clouds.Report(ctx, cloud, report)
	if !errors.Is(err, openstack.ErrNotFound) {
		return revision, changed, err
	}
	if err := r.awaitCloud(ctx, cloud, err); err != nil {
		return 0, false, err
	}
	return r.clouds.Report(ctx, cloud, report)
}

// LiveOpenStack queries the OpenStack of a cloud; see openstack.Clouds.
func (r *Runner) LiveOpenStack(ctx context.Context, cloud string, options api.LiveOptions) (*api.LiveOpenStack, error) {
	live, err := r.clouds.Live(ctx, cloud, options)
	if !errors.Is(err, openstack.ErrNotFound) {
		return live, err
	}
	if err := r.awaitCloud(ctx, cloud, err); err != nil {
		return nil, err
	}
	return r.clouds.Live(ctx, cloud, options)
}

// awaitCloud waits until a cloud that was just created is known. If there is none, it returns
// missing.
func (r *Runner) awaitCloud(ctx context.Context, cloud string, missing error) error {
	snapshot := r.fleet.Snapshot()
	if snapshot.Get(api.Key{Kind: api.KindCloud, Name: cloud}) == nil {
		return missing
	}
	return r.tracker.Reach(ctx, snapshot.Revision())
}
