package runner

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
)

const (
	// reportEvery is the interval at which changes of workloads are written, in batches.
	reportEvery = 250 * time.Millisecond
	// reportAgain is the delay after a failure.
	reportAgain = 2 * time.Second
	// maxMessage limits the length of a message about a workload, in bytes.
	maxMessage = 512
)

// reports are the observations of workloads on the way to their status. The status is compared with
// the observations, so that what was lost or removed is written again.
type reports struct {
	workloads Workloads
	logger    *slog.Logger
	wake      chan struct{} // capacity of one

	mu       sync.Mutex
	observed map[subject]api.ClusterDistribution
	stored   map[api.Key][]api.ClusterDistribution // of workloads with a distribution
	runs     map[api.Key]map[string]struct{}       // clusters of each workload
	due      map[subject]struct{}
}

// subject is a workload in a cluster.
type subject struct {
	key     api.Key
	cluster string
}

func newReports(w Workloads, logger *slog.Logger) *reports {
	return &reports{
		workloads: w, logger: logger, wake: make(chan struct{}, 1), observed: map[subject]api.ClusterDistribution{},
		stored: map[api.Key][]api.ClusterDistribution{}, runs: map[api.Key]map[string]struct{}{}, due: map[subject]struct{}{},
	}
}

// tell accepts an observation of a workload in a cluster.
func (r *reports) tell(key api.Key, d api.ClusterDistribution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(d.Message) > maxMessage {
		d.Message = strings.ToValidUTF8(d.Message[:maxMessage], "")
	}
	at := subject{key, d.Cluster}
	r.observed[at] = d
	r.check(at)
}

// forget removes the observation of a workload in a cluster.
func (r *reports) forget(key api.Key, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(subject{key, cluster})
}

// drop removes an observation and its pending report. The caller holds the lock.
func (r *reports) drop(at subject) {
	delete(r.observed, at)
	delete(r.due, at)
}

// put updates a workload from the store.
func (r *reports) put(w *api.Workload) {
	key := api.KeyOf(w)
	if w.Spec.Distribution == nil {
		r.remove(key)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	runs := make(map[string]struct{}, len(w.Status.Clusters))
	for _, c := range w.Status.Clusters {
		runs[c.Name] = struct{}{}
	}
	for _, e := range w.Status.Evictions {
		runs[e.Cluster] = struct{}{}
	}
	for cluster := range r.runs[key] {
		if _, still := runs[cluster]; !still {
			r.drop(subject{key, cluster})
		}
	}
	r.stored[key], r.runs[key] = w.Status.Distribution, runs
	for cluster := range runs {
		r.check(subject{key, cluster})
	}
}

func (r *reports) remove(key api.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for cluster := range r.runs[key] {
		r.drop(subject{key, cluster})
	}
	delete(r.stored, key)
	delete(r.runs, key)
}

// check queues an observation if the workload runs in the cluster and its status differs.
func (r *reports) check(at subject) {
	d, observed := r.observed[at]
	_, runs := r.runs[at.key][at.cluster]
	i := slices.IndexFunc(r.stored[at.key], func(s api.ClusterDistribution) bool { return s.Cluster == at.cluster })
	if !observed || !runs || i >= 0 && r.stored[at.key][i].Same(d) {
		delete(r.due, at)
		return
	}
	r.due[at] = struct{}{}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run writes reports until ctx is done.
func (r *reports) run(ctx context.Context) error {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		wait := reportEvery
		if err := r.workloads.ReportDistributions(ctx, r.take()); err != nil && ctx.Err() == nil {
			r.logger.Warn("observations of workloads could not be stored yet", "error", err)
			wait = reportAgain
			r.checkAll()
		}
		if !backoff.Wait(ctx, wait) {
			return ctx.Err()
		}
	}
}

// take returns the pending reports in a fixed order.
func (r *reports) take() []reconcile.DistributionReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]reconcile.DistributionReport, 0, len(r.due))
	for at := range r.due {
		list = append(list, reconcile.DistributionReport{Key: at.key, Distribution: r.observed[at]})
	}
	clear(r.due)
	slices.SortFunc(list, func(a, b reconcile.DistributionReport) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Distribution.Cluster, b.Distribution.Cluster))
	})
	return list
}

func (r *reports) checkAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range r.observed {
		r.check(at)
	}
}
