package kubernetes

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

const (
	// quiet is how long there must be no changes before changes are reported, and atLatest the
	// maximum delay: pods often change many at a time.
	quiet    = 250 * time.Millisecond
	atLatest = time.Second
	// firstWithin is how long the first report waits for complete data.
	firstWithin = 5 * time.Second
	// maxProbe is the maximum timeout of a probe.
	maxProbe = 10 * time.Second
	// jitter is the fraction by which an interval is randomly shortened.
	jitter = 0.1
)

// target is what is observed.
type target struct {
	uid        string // of the cluster: a recreated one starts from scratch
	kubeconfig api.Secret
	interval   time.Duration
}

// watcher observes one cluster.
type watcher struct {
	name     string
	target   target
	sink     Sink
	client   *client
	informer *informer.Informer // an empty one until the cluster's own is opened

	definitions *informer.Table[named]
	services    *informer.Table[named]

	mu    sync.Mutex
	types served

	again        time.Time     // when to read the types once more; zero = not
	probed       chan struct{} // closed when the first probe has been reported
	wake         chan struct{} // capacity of one: something changed
	typesChanged chan struct{} // capacity of one
}

func newWatcher(name string, t target, sink Sink) *watcher {
	return &watcher{
		name: name, target: t, sink: sink, informer: informer.New(name, nil, nil), definitions: namedTable(), services: namedTable(),
		probed: make(chan struct{}), wake: make(chan struct{}, 1), typesChanged: make(chan struct{}, 1),
	}
}

// run observes until ctx is done. The error is a *recovery.Panic.
func (w *watcher) run(ctx context.Context, informers *informer.Group) error {
	if err := w.open(informers); err != nil {
		// Report only the error, at the interval of probes.
		for ctx.Err() == nil {
			w.tell(0, err)
			backoff.Wait(ctx, w.target.interval)
		}
		return nil
	}
	defer w.informer.Close()
	defer w.client.Close()
	ctx = quietly(ctx)
	defer w.informer.Follow(informer.Follower{Changed: w.changed, Probes: true})() //nolint:contextcheck // the informer continues for others
	group, ctx := errgroup.WithContext(ctx)
	begin := func(task func(context.Context)) {
		group.Go(func() error { return recovery.Confine("", func() error { task(ctx); return nil }) })
	}
	begin(w.probe)
	begin(w.report)
	begin(w.followTypes)
	begin(informer.Reflect(w.informer, w.definitions, w.client.metadata.Resource(definitionResource), w.changedTypes).Run)
	// Aggregated API servers are watched only as a trigger for reading the types.
	begin(informer.Reflect(w.informer, w.services, w.client.metadata.Resource(serviceResource), w.changedTypes).Run)
	<-ctx.Done()
	// Interrupts requests that hang.
	w.client.Close()
	return group.Wait()
}

// open prepares the access to the cluster.
func (w *watcher) open(informers *informer.Group) (err error) {
	if w.client, err = newClient(informers.Clusters, w.name, w.target.kubeconfig); err != nil {
		return err
	}
	f, err := informers.Open(w.name, w.target.kubeconfig)
	if err != nil {
		w.client.Close()
		return err
	}
	w.informer = f
	return nil
}

func (w *watcher) changed() { signal(w.wake) }

func (w *watcher) changedTypes() {
	signal(w.typesChanged)
	signal(w.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// probe probes the API server at each interval.
func (w *watcher) probe(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		began := time.Now()
		asking, cancel := context.WithTimeout(ctx, min(w.target.interval, maxProbe))
		code, err := w.client.readyz(asking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		answer, _, _ := answerOf(code, err)
		if w.informer.Gate.Set(unanswered(code, err)) && !first && answer != health.AnswerNone {
			signal(w.typesChanged) // its version may have changed
		}
		if first {
			w.awaitFirst(ctx)
		}
		w.tell(code, err)
		if first {
			close(w.probed)
		}
		next := time.Duration(float64(w.target.interval) * (1 - jitter*rand.Float64()))
		backoff.Wait(ctx, next-time.Since(began))
	}
}

// awaitFirst waits briefly for data, so that the first report is complete.
func (w *watcher) awaitFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstWithin)
	defer cancel()
	for w.informer.Gate.IsOpen() && w.pending() && ctx.Err() == nil {
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
}

// pending reports whether any part is neither known nor known to fail.
func (w *watcher) pending() bool {
	for _, p := range w.parts() {
		if !p.known && p.err == nil {
			return true
		}
	}
	return false
}

// report reports changes, several at a time, until ctx is done. Whether everything is current is
// reported with the probes, which know the cause.
func (w *watcher) report(ctx context.Context) {
	select {
	case <-w.probed:
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		w.gather(ctx)
		if ctx.Err() == nil && w.informer.Gate.IsOpen() {
			w.sink.Observed(w.name, w.target.kubeconfig, health.Observation{Facts: w.facts()})
		}
	}
}

// gather waits until there have been no changes for a moment, but not too long.
func (w *watcher) gather(ctx context.Context) {
	latest := time.NewTimer(atLatest)
	defer latest.Stop()
	still := time.NewTimer(quiet)
	defer still.Stop()
	for {
		select {
		case <-w.wake:
			still.Reset(quiet)
		case <-still.C:
			return
		case <-latest.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tell reports the result of a probe together with everything else.
func (w *watcher) tell(code int, err error) {
	o := health.Observation{Facts: w.facts(), Condition: condition(w.parts())}
	var reason string
	o.Answer, reason, o.Message = answerOf(code, err)
	if o.Answer == health.AnswerNone {
		o.Condition = api.Condition{Status: api.ConditionFalse, Reason: reason, Message: o.Message}
	}
	w.sink.Observed(w.name, w.target.kubeconfig, o)
}

// quietly suppresses log messages of libraries: what matters is in the status of the cluster.
func quietly(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }
