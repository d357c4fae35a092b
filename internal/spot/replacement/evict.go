package replacement

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// errBusy says that too many pods of the cluster are being replaced.
var errBusy = errors.New("pods of other workloads are being replaced first")

// lostFor is how long a pod counts as terminating after an eviction without a response: if it is
// evicted, that is visible by then.
const lostFor = 10 * time.Second

// errUnanswered says that it is unknown whether a pod is being evicted.
var errUnanswered = errors.New("there is no response")

// errGone says that a pod is gone, or another one has its name. The watch will report it.
var errGone = errors.New("it no longer exists")

// replace evicts the pod of a plan.
func (r *Replacement) replace(ctx context.Context, key workloadKey, v *inventory.View, plan *split.Plan) error {
	pod := plan.Replace
	now := r.Now()
	r.mu.Lock()
	if len(r.going) >= maxGoing && plan.Reason != split.ReasonNodeEnds {
		r.mu.Unlock()
		return errBusy
	}
	// Before the request: the response may be lost although the pod is evicted.
	r.going[key] = going{types.UID(pod.UID), now}
	r.mu.Unlock()
	switch err := r.evict(ctx, key.Namespace, pod); {
	case errors.Is(err, errGone):
		return nil // not by us
	case err != nil:
		r.mu.Lock()
		if errors.Is(err, errUnanswered) {
			r.going[key] = going{types.UID(pod.UID), now.Add(lostFor - forgetAfter)}
		} else {
			delete(r.going, key)
		}
		r.mu.Unlock()
		return err
	}
	if plan.Reason == split.ReasonMismatch {
		r.tried(key, v, now)
	}
	r.mu.Lock()
	r.done[key]++
	r.mu.Unlock()
	r.Replaced(plan.Reason)
	r.Logger.Info("replacing a pod", "workload", name(key), "pod", pod.Name, "reason", plan.Reason, "node", pod.Node)
	r.event(key, v.UID, "PodReplaced", plan.Message)
	return nil
}

// evict requests the eviction of a pod, which disruption budgets may temporarily prevent. If a
// cluster does not support evictions, it deletes the pod.
func (r *Replacement) evict(ctx context.Context, namespace string, pod *split.Pod) error {
	uid := types.UID(pod.UID)
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	err := r.Client.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}, DeleteOptions: &options,
	})
	if apierrors.IsMethodNotSupported(err) {
		err = r.Client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, options)
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return errGone
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("a disruption budget does not allow evicting pod %s now", pod.Name)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the kubeconfig may not evict pod %s: grant create on pods/eviction", pod.Name)
	}
	if unanswered := apierrors.ReasonForError(err) == metav1.StatusReasonUnknown; unanswered || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return fmt.Errorf("evict pod %s: %w: %w", pod.Name, errUnanswered, err)
	}
	return fmt.Errorf("evict pod %s: %w", pod.Name, err)
}
