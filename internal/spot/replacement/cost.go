package replacement

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// setCosts sets the deletion costs of a Deployment's pods, which determine the order of scaling
// down. Costs that pods had when they were created are not changed.
func (r *Replacement) setCosts(ctx context.Context, key workloadKey, v *inventory.View) error {
	if key.Kind != api.KindDeployment || !v.Managed || v.CostsOwn {
		return nil
	}
	onDemand, onSpot := split.DeletionCosts(v.Target, split.Live(v.Pods))
	for i := range v.Pods {
		pod := &v.Pods[i]
		want := inventory.CostOf(onSpot)
		if pod.For == split.OnDemand {
			want = inventory.CostOf(onDemand)
		}
		if pod.Terminating || pod.For == split.Unset || v.Costs[pod.Name] == want {
			continue
		}
		if err := r.setCost(ctx, key.Namespace, pod, want); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replacement) setCost(ctx context.Context, namespace string, pod *split.Pod, cost string) error {
	var value any = cost
	if cost == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]any{split.AnnotationDeletionCost: value},
	}})
	if err != nil {
		return err
	}
	_, err = r.Client.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("set the deletion cost of pod %s: %w", pod.Name, err)
	}
	return nil
}
