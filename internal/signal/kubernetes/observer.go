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
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

const (
	// listsAtOnce is how many pages of lists are read at a time, over all
	// clusters. It bounds the memory that they take while they are read.
	listsAtOnce = 8
	// startWithin is the time over which the beginnings after a restart are spread.
	startWithin = 5 * time.Second
)

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
	// Clusters are the connections. Required.
	Clusters *kube.Clusters
	// Faults is told of panics. Nil tells nobody.
	Faults *fault.Component
}

// Observer watches clusters. Put and Remove tell it what there is; Run does the
// rest.
type Observer struct {
	Options
	places places
	count  prometheus.Gauge
	wake   chan struct{} // has room for one

	mu    sync.Mutex
	known map[string]*watched
	fresh []*watched // not begun yet
}

// watched is a cluster that is watched, or will be when Run gets to it.
type watched struct {
	name   string
	target target
	delay  time.Duration
	ended  chan struct{} // closed when it is to be watched no more
}

// New makes an Observer that knows no clusters.
func New(options Options) *Observer {
	return &Observer{
		Options: options, places: make(places, listsAtOnce), known: map[string]*watched{}, wake: make(chan struct{}, 1),
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
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.known[c.Metadata.Name]
	if old != nil && old.target == t {
		return
	}
	if old != nil {
		o.end(old)
	}
	w := &watched{name: c.Metadata.Name, target: t, ended: make(chan struct{})}
	if old == nil && api.FindCondition(c.Status.Conditions, api.ConditionObserved) != nil {
		// Known from before a restart: not all at once.
		w.delay = time.Duration(rand.Int64N(int64(min(startWithin, t.interval))))
	}
	o.known[w.name] = w
	o.fresh = append(o.fresh, w)
	o.count.Inc()
	signal(o.wake)
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
	if w := o.known[name]; w != nil {
		o.end(w)
	}
}

func (o *Observer) end(w *watched) {
	delete(o.known, w.name)
	o.count.Dec()
	close(w.ended)
}

// Run watches the clusters until ctx ends.
func (o *Observer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		o.mu.Lock()
		fresh := o.fresh
		o.fresh = nil
		o.mu.Unlock()
		for _, w := range fresh {
			running.Go(func() { o.watch(ctx, w) })
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// watch watches one cluster until it is to be watched no more.
func (o *Observer) watch(ctx context.Context, w *watched) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		pause(ctx, w.delay)
		key := api.Key{Kind: api.KindCluster, Name: w.name}.String()
		// What a watcher knew when it panicked is of no use: the next begins anew. It has
		// no error of its own.
		_ = o.Faults.Keep(ctx, key, func(ctx context.Context) error {
			watcher := newWatcher(w.name, w.target, o.Sink, o.places)
			watcher.faults = o.Faults
			return watcher.run(ctx, o.Clusters)
		})
	}()
	select {
	case <-w.ended:
	case <-ctx.Done():
	}
	cancel()
	<-watching
}
