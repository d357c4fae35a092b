package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/install"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/replacement"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

const (
	// maxAnswer limits the size of a cluster's response, except of a watch.
	maxAnswer = 512 << 20
	// removeWithin is the timeout of uninstalling.
	removeWithin = 10 * time.Second
	// drainedAfter is how often an agent of a cluster with spot disabled checks whether it is done.
	drainedAfter = 5 * time.Second
	// statusEvery is how often the status of the cluster is checked.
	statusEvery = time.Second
)

// removeAgain is the backoff after a failed uninstallation.
var removeAgain = backoff.Backoff{First: time.Second, Most: 5 * time.Minute}

// agent splits the workloads of one cluster.
type agent struct {
	runner *Runner
	name   string
	target target
	secret string
	figure *clusterFigures
	end    sync.Once
	done   chan struct{} // closed when it has ended

	mu        sync.Mutex
	remove    bool // uninstall at the end
	asked     map[inventory.Key]inventory.Asked
	inventory *inventory.Inventory // nil before it is connected
	replaces  *replacement.Replacement
	installer *install.Installer
	invalid   error // why it cannot connect at all
	told      map[inventory.Key]replacement.Report
}

func newAgent(r *Runner, name string, t target, asked map[inventory.Key]inventory.Asked) *agent {
	a := &agent{
		runner: r, name: name, target: t, asked: asked,
		told: map[inventory.Key]replacement.Report{}, done: make(chan struct{}), figure: r.figures.of(name),
	}
	if r.Authority != nil {
		a.secret = r.Authority.Secret(t.uid)
	}
	return a
}

// leave says, before the agent is stopped, whether to uninstall.
func (a *agent) leave(remove bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove = remove
}

// ask sets the requests of workloads for the cluster.
func (a *agent) ask(asked map[inventory.Key]inventory.Asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = asked
	if a.inventory != nil {
		a.inventory.Ask(asked)
	}
	// A workload that was removed and came back before it was checked has no changes to report.
	for key := range asked {
		if report, ok := a.told[key]; ok {
			a.pass(report)
		}
	}
}

// Secret implements webhook.Cluster.
func (a *agent) Secret() string { return a.secret }

// Assign implements webhook.Cluster. Before everything has been listed once, counts would be wrong.
func (a *agent) Assign(ctx context.Context, c webhook.Creation) webhook.Assignment {
	a.mu.Lock()
	i := a.inventory
	a.mu.Unlock()
	if i == nil {
		return webhook.Assignment{}
	}
	select {
	case <-i.Synced():
		return i.Assign(ctx, c)
	case <-ctx.Done():
		return webhook.Assignment{}
	}
}

// run works on the cluster until ctx is done, or there is nothing left to do. The error is a
// *recovery.Panic: after a panic the agent's state is unusable, and it is restarted from scratch.
func (a *agent) run(ctx context.Context) error {
	err := recovery.Confine("", func() error { return a.attend(ctx) })
	if err == nil {
		a.end.Do(func() { close(a.done) })
	}
	return err
}

// attend works on the cluster until ctx is done. The error is a *recovery.Panic.
func (a *agent) attend(ctx context.Context) error {
	closeAll, err := a.connect()
	if err != nil {
		a.mu.Lock()
		a.invalid = err
		a.mu.Unlock()
		a.reportStatus(ctx)
		return nil
	}
	defer closeAll()
	switch {
	case a.runner.AdmitOnly:
		return a.know(ctx)
	case a.target.enabled:
		defer a.replaces.Close()
		err = a.split(ctx)
	default:
		defer a.replaces.Close()
		err = a.undo(ctx)
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	remove := a.remove && a.target.enabled
	a.mu.Unlock()
	if remove {
		a.uninstall(context.WithoutCancel(ctx))
	}
	return nil
}

// connect prepares the access to the cluster and creates the agent's parts.
func (a *agent) connect() (closeAll func(), err error) {
	config, connection, err := a.runner.Kubernetes.Clusters.Open(a.name, a.target.kubeconfig, maxAnswer)
	if err != nil {
		return nil, err
	}
	shared, err := a.runner.Kubernetes.Open(a.name, a.target.kubeconfig)
	if err != nil {
		connection.Close()
		return nil, err
	}
	closeAll = func() { shared.Close(); connection.Close() }
	if err := a.equip(config, connection, shared); err != nil {
		closeAll()
		return nil, err
	}
	return closeAll, nil
}

// equip creates the agent's parts.
func (a *agent) equip(config *rest.Config, connection *kube.Connection, shared *informer.Informer) error {
	clients := func(perSecond float32) (*kubernetes.Clientset, error) {
		c := rest.CopyConfig(config)
		c.ContentType = "application/vnd.kubernetes.protobuf"
		c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		c.QPS, c.Burst = perSecond, int(2*perSecond)
		return kubernetes.NewForConfigAndClient(c, connection.HTTP)
	}
	// Pods waiting for admission take priority over replacements.
	reading, err := clients(500)
	if err != nil {
		return kube.Incomplete()
	}
	writing, err := clients(50)
	if err != nil {
		return kube.Incomplete()
	}
	options := inventory.Options{
		Client: reading, Informer: shared, Label: spot.LabelOf(a.target.label), Off: !a.target.enabled, Exclude: a.runner.ExcludeNamespaces,
		ReturnAfter: a.runner.ReturnAfter, Changed: func(inventory.Key) {}, NodeEnds: func(string) {}, Now: a.runner.Now,
	}
	logger := a.runner.Logger.With("cluster", a.name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runner.AdmitOnly {
		a.inventory = inventory.New(options)
		a.inventory.Ask(a.asked)
		return nil
	}
	if a.installer, err = a.newInstaller(writing, logger); err != nil {
		return err
	}
	a.replaces = replacement.New(replacement.Options{
		Client: writing, Faults: a.runner.faults, Recreate: a.target.recreate, Hold: a.hold, Report: a.take, Replaced: a.figure.replaced,
		Logger: logger, Now: a.runner.Now,
	})
	options.Changed, options.NodeEnds = a.replaces.Changed, a.replaces.NodeEnds
	a.inventory = inventory.New(options)
	a.inventory.Ask(a.asked)
	return nil
}

// newInstaller returns nil if the server has no webhook.
func (a *agent) newInstaller(client kubernetes.Interface, logger *slog.Logger) (*install.Installer, error) {
	if a.runner.Authority == nil {
		return nil, nil
	}
	return install.New(install.Options{
		Client: client, Cluster: a.name, BaseURL: fmt.Sprintf("%s/clusters/%s/%s", a.runner.WebhookURL, a.name, a.secret),
		Bundle: a.runner.Authority.Bundle, ExcludeNamespaces: a.runner.ExcludeNamespaces, Timeout: a.runner.WebhookTimeout, Logger: logger, Now: a.runner.Now,
	})
}

// begin runs a task in a group. If it panics, the whole group ends.
func (a *agent) begin(ctx context.Context, group *errgroup.Group, task func(context.Context) error) {
	group.Go(func() error {
		err := recovery.Confine("", func() error { return task(ctx) })
		if p, ok := errors.AsType[*recovery.Panic](err); ok {
			return p
		}
		if err != nil && ctx.Err() == nil {
			a.runner.Logger.Error("splitting pods in a cluster has stopped", "cluster", a.name, "error", err)
		}
		return nil
	})
}

// know maintains the inventory of the cluster without changing anything there.
func (a *agent) know(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	a.begin(ctx, group, a.inventory.Run)
	return group.Wait()
}

// split works on a cluster with spot enabled. The error is a *recovery.Panic.
func (a *agent) split(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	a.begin(ctx, group, a.inventory.Run)
	a.begin(ctx, group, func(ctx context.Context) error { return a.replaces.Run(ctx, a.inventory) })
	a.begin(ctx, group, a.followInstallation)
	a.begin(ctx, group, func(ctx context.Context) error { a.followStatus(ctx); return nil })
	return group.Wait()
}

func (a *agent) followInstallation(ctx context.Context) error {
	if a.installer == nil {
		<-ctx.Done()
		return nil
	}
	return a.installer.Run(ctx)
}

// undo works on a cluster with spot disabled: it uninstalls the webhook, and replaces pods that
// must be recreated until none is left. The error is a *recovery.Panic.
func (a *agent) undo(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	a.begin(ctx, group, func(ctx context.Context) error { a.uninstallAtLast(ctx); return nil })
	if a.target.recreate {
		a.begin(ctx, group, a.drain)
	}
	return group.Wait()
}

// drain replaces pods until none is left that was created for a node type. The error is a
// *recovery.Panic.
func (a *agent) drain(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	a.begin(ctx, group, a.inventory.Run)
	a.begin(ctx, group, func(ctx context.Context) error { return a.replaces.Run(ctx, a.inventory) })
	a.begin(ctx, group, func(ctx context.Context) error {
		defer cancel()
		for backoff.Wait(ctx, drainedAfter) {
			select {
			case <-a.inventory.Synced():
				if !a.inventory.Labelled() {
					return nil
				}
			default:
			}
		}
		return nil
	})
	return group.Wait()
}

// uninstallAtLast uninstalls the webhook as soon as the cluster can be reached.
func (a *agent) uninstallAtLast(ctx context.Context) {
	for failures := 1; !a.uninstall(ctx) && backoff.Wait(ctx, removeAgain.After(failures)); failures++ {
	}
}

// uninstall uninstalls the webhook, and reports whether that succeeded.
func (a *agent) uninstall(ctx context.Context) bool {
	if a.installer == nil {
		return true
	}
	removing, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	err := a.installer.Remove(removing)
	if err != nil && ctx.Err() == nil {
		a.runner.Logger.Warn("the webhook configurations of a cluster could not be removed", "cluster", a.name, "error", err)
	}
	return err == nil
}

// hold says why new pods would not be split.
func (a *agent) hold() string {
	if !a.target.enabled {
		return ""
	}
	condition := a.condition()
	if condition.Status == api.ConditionTrue {
		return ""
	}
	return condition.Message
}

// take accepts the report about a workload in the cluster.
func (a *agent) take(report replacement.Report) {
	a.mu.Lock()
	if report.Gone {
		delete(a.told, report.Key)
	} else {
		a.told[report.Key] = report
	}
	a.mu.Unlock()
	a.pass(report)
}

// pass forwards a report to the workload object that it belongs to, if any.
func (a *agent) pass(report replacement.Report) {
	if !a.target.enabled {
		return
	}
	key := workloadKey(report.Key)
	if report.Gone || report.Source != api.DistributionOfWorkload {
		a.runner.reports.forget(key, a.name)
		return
	}
	d := report.Distribution
	d.Cluster = a.name
	a.runner.reports.tell(key, d)
}

// reported returns the last reports about all workloads.
func (a *agent) reported() map[inventory.Key]replacement.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.told)
}
