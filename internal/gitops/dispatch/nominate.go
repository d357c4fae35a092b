package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
)

const (
	// maxNominated is how many clusters Kueue accepts.
	maxNominated = 20
	// maxRounds limits how often a nomination is begun again because the Workload has changed.
	maxRounds = 8
)

// plan is what to do with a Workload.
type plan struct {
	// ours says that the Workload waits for MultiKueue.
	ours bool
	// clusters are those to nominate, by name.
	clusters []string
	// problem says why the Workload is left as it is; the zero value means that it is not.
	problem problem
}

// problem is why Workloads that follow a placement are left as they are.
type problem struct {
	placement api.Key
	why       string
	// brief problems go away by themselves.
	brief bool
}

// differs reports whether other clusters are to be nominated than are.
func (p plan) differs(w waiting) bool {
	return p.ours && p.problem == problem{} && !slices.Equal(p.clusters, w.nominated)
}

// plan decides what to do with a Workload. The caller holds the lock.
func (d *Dispatcher) plan(w waiting) plan {
	at := slices.IndexFunc(w.checks, func(check string) bool { _, ours := d.workers[check]; return ours })
	if at < 0 {
		return plan{}
	}
	p := plan{ours: true}
	leave := func(brief bool, format string, args ...any) plan {
		p.problem = problem{w.placement, fmt.Sprintf(format, args...), brief}
		return p
	}
	workers := d.workers[w.checks[at]]
	if len(workers.clusters) == 0 {
		return leave(false, "AdmissionCheck %s has no clusters: MultiKueueConfig %q does not exist", w.checks[at], workers.config)
	}
	snapshot := d.options.Fleet.Snapshot()
	// The age of the store does not matter: only the leader nominates, whose decisions are the newest.
	source := gitops.Source{Objects: snapshot, MayRead: func(api.Object) error { return nil }}
	decision, err := source.Decision(w.placement)
	if err != nil {
		entry := snapshot.Get(w.placement)
		brief := false
		if entry != nil {
			placement, ok := entry.Object.(*api.Placement)
			brief = ok && placement.Status.ObservedGeneration != placement.Metadata.Generation
		}
		return leave(brief, "%s", err)
	}
	var all []string
	for _, one := range decision {
		if one.State == api.ClusterServing {
			all = append(all, one.Cluster)
		}
	}
	if len(all) == 0 && len(decision) > 0 {
		return leave(false, "%s is leaving all of its clusters", w.placement)
	}
	for _, cluster := range all {
		if slices.Contains(workers.clusters, cluster) && len(p.clusters) < maxNominated {
			p.clusters = append(p.clusters, cluster)
		}
	}
	if len(p.clusters) == 0 && len(all) > 0 {
		return leave(false, "none of its clusters (%s) is in MultiKueueConfig %s", strings.Join(all[:min(len(all), maxNominated)], ", "), workers.config)
	}
	slices.Sort(p.clusters)
	return p
}

// keep records why a Workload is left as it is, and says so if nobody knows it yet. The caller holds
// the lock.
func (d *Dispatcher) keep(n name, p problem) {
	before, kept := d.kept[n]
	if before == p {
		return
	}
	if kept {
		if d.problems[before]--; d.problems[before] == 0 {
			delete(d.problems, before)
		}
		delete(d.kept, n)
	}
	if p == (problem{}) {
		return
	}
	d.kept[n] = p
	if d.problems[p]++; d.problems[p] == 1 && !p.brief {
		d.options.Logger.Warn("the clusters of Workloads of Kueue stay as they are", "placement", p.placement.String(), "workload", n.String(), "error", p.why)
	}
}

// errContested is returned if a nomination was replaced.
var errContested = errors.New("something else nominates other clusters, too: set multiKueue.dispatcherName in the configuration of Kueue to a name of your own, such as scheduler/multikueue")

// nominate makes the nomination of a Workload that of the decision, beginning with what is in the hub
// now. It is refused if the Workload is not as it was read.
func (d *Dispatcher) nominate(ctx context.Context, n name) error {
	err := d.write(ctx, n)
	if err != nil && ctx.Err() == nil {
		d.figures.nominations.WithLabelValues("failed").Inc()
	}
	return err
}

func (d *Dispatcher) write(ctx context.Context, n name) error {
	client := d.link.Client().Resource(workloads).Namespace(n.namespace)
	for range maxRounds {
		within, cancel := hub.Within(ctx)
		u, err := client.Get(within, n.name, metav1.GetOptions{})
		cancel()
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return hub.Describe("read", "Workload "+n.String(), err)
		}
		w, waits := waitingOf(u)
		if !waits {
			return nil
		}
		d.mu.Lock()
		p, before := d.plan(w), d.wrote[n]
		d.mu.Unlock()
		if !p.differs(w) {
			return nil
		}
		apply, err := nomination(u, p.clusters)
		if err != nil {
			return err
		}
		within, cancel = hub.Within(ctx)
		_, err = client.ApplyStatus(within, n.name, apply, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		cancel()
		switch {
		case apierrors.IsConflict(err):
			continue
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return hub.Describe("write the status of", "Workload "+n.String(), err)
		}
		contested := before.uid == w.uid && len(w.nominated) > 0 && !slices.Equal(w.nominated, before.nominated)
		w.nominated = p.clusters
		d.mu.Lock()
		if d.known[n].uid == w.uid {
			d.wrote[n] = w
		}
		d.mu.Unlock()
		if contested {
			return errContested // so that both do not write all the time
		}
		d.figures.nominations.WithLabelValues("nominated").Inc()
		return nil
	}
	return errors.New("somebody else changes it at the same time")
}

// failed logs the first of several failures.
func (d *Dispatcher) failed(n name, err error) {
	d.options.Logger.Warn("clusters could not be nominated for a Workload of Kueue; it is tried again", "workload", n.String(), "error", err.Error())
}
