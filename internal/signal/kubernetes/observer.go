// Package kubernetes watches the clusters that have a kubeconfig: whether their
// API server is well, their nodes, what their pods take up, which types they
// serve. It keeps a few numbers of each object and no objects.
package kubernetes

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/keyed"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// startWithin is the time over which the beginnings after a restart are spread.
const startWithin = 5 * time.Second

// Sink takes what is observed.
type Sink interface {
	// Observed takes what was observed in a cluster with a kubeconfig. It must
	// not keep its caller waiting.
	Observed(cluster string, kubeconfig api.Secret, o health.Observation)
}

// Options of an Observer.
type Options struct {
	// Sink takes what is observed. Required.
	Sink Sink
	// Feeds watch the nodes and pods. Required.
	Feeds *feed.Group
	// Faults is told of panics. Nil tells nobody.
	Faults *fault.Component
}

// Observer watches clusters. Put and Remove tell it what there is; Run does the
// rest.
type Observer struct {
	Options
	count    prometheus.Gauge
	watchers *keyed.Group[string] // by cluster

	mu    sync.Mutex
	known map[string]target
}

// New makes an Observer that knows no clusters.
func New(options Options) *Observer {
	return &Observer{
		Options: options, known: map[string]target{},
		watchers: keyed.New(options.Faults, func(name string) string { return api.Key{Kind: api.KindCluster, Name: name}.String() }),
		count: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_kubernetes_clusters", Help: "Clusters with a kubeconfig, which are watched.",
		}),
	}
}

// Collectors are the observer's own figures.
func (o *Observer) Collectors() []prometheus.Collector { return []prometheus.Collector{o.count} }

// Put tells of a cluster as it is now. Another kubeconfig or interval begins
// anew, with connections of its own; what was known of the cluster stays until
// then.
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
		// What a watcher knew when it panicked is of no use: the next begins anew.
		return newWatcher(name, t, o.Sink).run(ctx, o.Feeds)
	})
}

// targetOf reads out of a cluster how it is watched.
func targetOf(c *api.Cluster) (target, bool) {
	if !c.HasKubeconfig() {
		return target{}, false
	}
	return target{c.Metadata.UID, c.Spec.Kubernetes.Kubeconfig, health.ObserveInterval(c)}, true
}

// Remove tells that a cluster is gone, or has no kubeconfig any more.
func (o *Observer) Remove(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.known[name]; known {
		delete(o.known, name)
		o.count.Dec()
		o.watchers.Stop(name)
	}
}

// Run watches the clusters until ctx ends.
func (o *Observer) Run(ctx context.Context) error { return o.watchers.Run(ctx) }
