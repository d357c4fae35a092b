// Package kubernetes observes the clusters that have a kubeconfig: the health of the API server,
// the nodes, the resources used by pods, and the API resource types. It keeps only a few numbers of
// each object.
package kubernetes

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/workers"
)

// startWithin is the time over which the first connections after a restart are spread.
const startWithin = 5 * time.Second

// Sink receives observations.
type Sink interface {
	// Observed accepts an observation of a cluster with a kubeconfig. It must not block.
	Observed(cluster string, kubeconfig api.Secret, o health.Observation)
}

// Options of an Observer.
type Options struct {
	// Sink receives the observations. Required.
	Sink Sink
	// Informers watch the nodes and pods. Required.
	Informers *informer.Group
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Component
}

// Observer observes clusters. Put and Remove update the clusters; Run does the rest.
type Observer struct {
	Options
	count    prometheus.Gauge
	watchers *workers.Group[string] // by cluster

	mu    sync.Mutex
	known map[string]target
}

// New returns an Observer without clusters.
func New(options Options) *Observer {
	return &Observer{
		Options: options, known: map[string]target{},
		watchers: workers.New(options.Faults, func(name string) string { return api.Key{Kind: api.KindCluster, Name: name}.String() }),
		count: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_kubernetes_clusters", Help: "Clusters that are watched with a kubeconfig.",
		}),
	}
}

// Collectors returns the observer's metrics.
func (o *Observer) Collectors() []prometheus.Collector { return []prometheus.Collector{o.count} }

// Put adds or updates a cluster. With another kubeconfig or interval, its watcher is replaced by a
// new one with its own connections; what is known of the cluster is kept until then.
func (o *Observer) Put(c *api.Cluster) {
	t, ok := targetOf(c)
	if !ok {
		o.Remove(c.Metadata.Name)
		return
	}
	name := c.Metadata.Name
	o.mu.Lock()
	defer o.mu.Unlock()
	old, known := o.known[name]
	if old == t {
		return
	}
	var delay time.Duration
	if !known {
		o.count.Inc()
		if api.FindCondition(c.Status.Conditions, api.ConditionObserved) != nil {
			// Known from before a restart: not all at once.
			delay = time.Duration(rand.Int64N(int64(min(startWithin, t.interval))))
		}
	}
	o.known[name] = t
	o.watchers.Start(name, func(ctx context.Context) error {
		backoff.Wait(ctx, delay)
		delay = 0
		// After a panic, a new watcher starts from scratch.
		return newWatcher(name, t, o.Sink).run(ctx, o.Informers)
	})
}

// targetOf returns how a cluster is observed.
func targetOf(c *api.Cluster) (target, bool) {
	if !c.HasKubeconfig() {
		return target{}, false
	}
	return target{c.Metadata.UID, c.Spec.Kubernetes.Kubeconfig, health.ObserveInterval(c)}, true
}

// Remove removes a cluster that is gone or no longer has a kubeconfig.
func (o *Observer) Remove(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.known[name]; known {
		delete(o.known, name)
		o.count.Dec()
		o.watchers.Stop(name)
	}
}

// Run observes the clusters until ctx is done.
func (o *Observer) Run(ctx context.Context) error { return o.watchers.Run(ctx) }
