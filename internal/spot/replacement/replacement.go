// Package replacement moves the pods of workloads in one cluster to their split, one pod of a
// workload at a time: it evicts a pod of the wrong type, and the workload's controller creates
// another. It does the same in advance for the pods of nodes whose termination was announced.
package replacement

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

const (
	// workers is how many workloads are processed concurrently.
	workers = 4
	// maxGoing is how many pods of a cluster are replaced at the same time, each of another
	// workload: when everything changes at once, the cluster must find room for that many.
	maxGoing = 50
	// lookAgain is how often every workload is checked without a change.
	lookAgain = 30 * time.Second
	// busyPause is how long a workload waits while others are being replaced.
	busyPause = time.Second
)

// workloadKey identifies a Deployment or StatefulSet in the cluster.
type workloadKey = inventory.Key

// Report is the state of a workload's split.
type Report struct {
	Key    workloadKey
	Source api.DistributionSource
	// Distribution does not contain the name of the cluster.
	Distribution api.ClusterDistribution
	// Gone says that there is nothing left to report about the workload.
	Gone bool
}

// Options of a Replacement. All are required.
type Options struct {
	Client kubernetes.Interface
	// Recreate says that pods are replaced when they are no longer split.
	Recreate bool
	// Hold says why new pods would not be split, or returns "".
	Hold func() string
	// Report is called with changes of a workload.
	Report func(Report)
	// Replaced counts a replaced pod by reason.
	Replaced func(split.Reason)
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Component
	Logger *slog.Logger
	Now    func() time.Time
}

// Replacement replaces pods in one cluster.
type Replacement struct {
	Options
	inventory *inventory.Inventory
	queue     workqueue.TypedRateLimitingInterface[workloadKey]
	fence     chan struct{} // capacity of one: a node may have to be fenced
	events    record.EventRecorder

	mu    sync.Mutex
	going map[workloadKey]going
	tries map[workloadKey]tries
	done  map[workloadKey]int64 // number of pods replaced
	told  map[workloadKey]Report
}

// going is a pod whose eviction was requested. Until it is gone, no other pod of the workload is
// touched, whatever the inventory shows.
type going struct {
	pod types.UID
	at  time.Time
}

// New returns a Replacement. Its inventory, which needs Changed and NodeEnds, is passed to Run.
func New(o Options) *Replacement {
	return &Replacement{
		Options: o, fence: make(chan struct{}, 1),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[workloadKey](time.Second, time.Minute)),
		going: map[workloadKey]going{}, tries: map[workloadKey]tries{}, done: map[workloadKey]int64{}, told: map[workloadKey]Report{},
	}
}

// Close stops what New has started, for a Replacement that may not have run.
func (r *Replacement) Close() { r.queue.ShutDown() }

// Changed queues a workload that has changed.
func (r *Replacement) Changed(key workloadKey) { r.queue.Add(key) }

// NodeEnds notifies that a node's termination was announced and it still accepts pods.
func (r *Replacement) NodeEnds(string) {
	select {
	case r.fence <- struct{}{}:
	default:
	}
}

// Run processes the workloads in i until ctx is done.
func (r *Replacement) Run(ctx context.Context, i *inventory.Inventory) error {
	r.inventory = i
	defer r.queue.ShutDown()
	select {
	case <-i.Synced():
	case <-ctx.Done():
		return nil
	}
	stopEvents := r.startEvents(ctx)
	defer stopEvents()
	group, ctx := errgroup.WithContext(ctx)
	for _, task := range append(slices.Repeat([]func(context.Context){r.work}, workers), r.followNodes, r.lookAtAll) {
		group.Go(func() error { return recovery.Confine("", func() error { task(ctx); return nil }) })
	}
	return group.Wait()
}

// LookAtAll queues every workload.
func (r *Replacement) LookAtAll() {
	for _, key := range r.inventory.Keys() {
		r.queue.Add(key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.told {
		r.queue.Add(key)
	}
}

func (r *Replacement) lookAtAll(ctx context.Context) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	defer r.queue.ShutDown() // stops the workers
	for {
		r.LookAtAll()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Replacement) work(ctx context.Context) {
	for {
		key, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		var again time.Duration
		err := r.Faults.Do(name(key), func() (err error) {
			again, err = r.look(ctx, key)
			return err
		})
		switch {
		case err != nil:
			r.queue.AddRateLimited(key)
		default:
			r.queue.Forget(key)
			if again > 0 {
				r.queue.AddAfter(key, again)
			}
		}
		r.queue.Done(key)
	}
}

// tell reports a workload if its report has changed.
func (r *Replacement) tell(report Report) {
	r.mu.Lock()
	before, known := r.told[report.Key]
	switch {
	case report.Gone && !known, known && before == report:
		r.mu.Unlock()
		return
	case report.Gone:
		delete(r.told, report.Key)
		delete(r.tries, report.Key)
		delete(r.done, report.Key)
		delete(r.going, report.Key)
	default:
		r.told[report.Key] = report
	}
	r.mu.Unlock()
	r.Report(report)
}

// name returns the name of a workload for logs.
func name(key workloadKey) string { return fmt.Sprintf("%s %s/%s", key.Kind, key.Namespace, key.Name) }
