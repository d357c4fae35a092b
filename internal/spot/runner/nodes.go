package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/replacement"
)

// connected returns the agent of a cluster whose inventory is complete. The error wraps
// spot.ErrNotEnabled or spot.ErrNotConnected.
func (r *Runner) connected(cluster string) (*agent, error) {
	a := r.agent(cluster)
	if a == nil || !a.target.splits() {
		return nil, fmt.Errorf("%s: %w", cluster, spot.ErrNotEnabled)
	}
	a.mu.Lock()
	i := a.inventory
	a.mu.Unlock()
	if i != nil {
		select {
		case <-i.Synced():
			return a, nil
		default:
		}
	}
	return nil, fmt.Errorf("%s: %w", cluster, spot.ErrNotConnected)
}

// Interrupt announces that a node of a cluster will be terminated. Errors wrap spot.ErrNotEnabled,
// spot.ErrNotConnected or spot.ErrNoNode.
func (r *Runner) Interrupt(ctx context.Context, cluster, node string, deadline time.Time) error {
	return r.mark(cluster, node, func(p *replacement.Replacement) error { return p.Interrupt(ctx, node, deadline) })
}

// Withdraw withdraws the announcement.
func (r *Runner) Withdraw(ctx context.Context, cluster, node string) error {
	return r.mark(cluster, node, func(p *replacement.Replacement) error { return p.Withdraw(ctx, node) })
}

func (r *Runner) mark(cluster, node string, do func(*replacement.Replacement) error) error {
	a, err := r.connected(cluster)
	if err != nil {
		return err
	}
	err = do(a.replaces)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, spot.ErrNoNode):
		return fmt.Errorf("%s, %s: %w", cluster, node, err)
	}
	_, message := kube.Describe("node "+node, err)
	return fmt.Errorf("%s: %w: %s", cluster, spot.ErrNotConnected, message)
}

// Distributions returns the workloads whose pods are split in a cluster. Errors wrap
// spot.ErrNotEnabled or spot.ErrNotConnected.
func (r *Runner) Distributions(cluster string) ([]api.DistributedWorkload, error) {
	a, err := r.connected(cluster)
	if err != nil {
		return nil, err
	}
	reports := a.reported()
	list := make([]api.DistributedWorkload, 0, len(reports))
	for key, report := range reports {
		w := api.DistributedWorkload{
			Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Source: report.Source, ClusterDistribution: report.Distribution,
		}
		w.Cluster = cluster
		list = append(list, w)
	}
	return list, nil
}
