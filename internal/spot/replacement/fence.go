package replacement

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

const (
	// fenceAgain is how often nodes are checked without a change.
	fenceAgain = 30 * time.Second
	// outlived is how long after its announced termination a node that still exists accepts pods
	// again.
	outlived = 10 * time.Minute
)

// followNodes keeps new pods off nodes whose termination was announced, until ctx is done: the
// replacement of a pod must not return to its node.
func (r *Replacement) followNodes(ctx context.Context) {
	ticker := time.NewTicker(fenceAgain)
	defer ticker.Stop()
	for {
		for node, ends := range r.inventory.Unfenced() {
			r.tryFence(ctx, node, func() error { return r.Interrupt(ctx, node, ends) })
		}
		for _, node := range r.inventory.Outlived(outlived) {
			r.tryFence(ctx, node, func() error { return r.Withdraw(ctx, node) })
		}
		select {
		case <-r.fence:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Replacement) tryFence(ctx context.Context, node string, try func() error) {
	if err := try(); err != nil && ctx.Err() == nil {
		r.Logger.Warn("the taint of a node could not be changed", "node", node, "error", err)
	}
}

// Interrupt marks a node that will be terminated at a time. spot.ErrNoNode: there is no such node.
func (r *Replacement) Interrupt(ctx context.Context, node string, ends time.Time) error {
	return r.taint(ctx, node, &corev1.Taint{
		Key: spot.TaintInterruption, Value: strconv.FormatInt(ends.Unix(), 10), Effect: corev1.TaintEffectNoSchedule,
	})
}

// Withdraw removes the mark from a node. spot.ErrNoNode: there is no such node.
func (r *Replacement) Withdraw(ctx context.Context, node string) error {
	return r.taint(ctx, node, nil)
}

// taint sets our taint on a node, replacing an existing one; nil removes it.
func (r *Replacement) taint(ctx context.Context, name string, taint *corev1.Taint) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := r.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return spot.ErrNoNode
		}
		if err != nil {
			return err
		}
		before := node.Spec.Taints
		node.Spec.Taints = slices.DeleteFunc(slices.Clone(before), func(t corev1.Taint) bool { return t.Key == spot.TaintInterruption })
		if taint != nil {
			node.Spec.Taints = append(node.Spec.Taints, *taint)
		}
		if slices.EqualFunc(before, node.Spec.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }) {
			return nil
		}
		_, err = r.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}
