package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// view shows objects to readers, completed by data that is not stored with them, and without what
// they may not see.
type view struct {
	fleet     *fleet.Fleet
	rights    auth.Rights
	decisions Decisions
	beats     *lastseen.Times
	faults    *recovery.Recorder
	now       func() time.Time
}

// cluster returns a cluster of the fleet, or nil.
func (v *view) cluster(name string) *api.Cluster {
	entry := v.fleet.Snapshot().Get(auth.ClusterKey(name))
	if entry == nil {
		return nil
	}
	cluster, _ := entry.Object.(*api.Cluster)
	return cluster
}

// notFound returns the problem for an object that cannot be shown.
func (v *view) notFound(key api.Key) *problem.Problem {
	return problem.NotFound(key, v.fleet.Snapshot().Damaged(key) != nil)
}

// shown returns an object for a reader. The status of a cluster is completed from its metrics and
// reservations, which change without a write to the cluster; that of a policy is derived from its
// workloads, and that of a score from the time.
func (v *view) shown(who auth.Identity, object api.Object) api.Object {
	return v.faulted(v.completed(who, v.rights.WithDetails(who, object)))
}

// faulted returns an object with a condition for damage in the store, or for panics in which the
// last work on it ended. It is not stored, because it is about this server.
func (v *view) faulted(object api.Object) api.Object {
	key := api.KeyOf(object)
	if d := v.fleet.Snapshot().Damaged(key); d != nil {
		return api.CopyWith(object, api.Condition{
			Type: api.ConditionFaulted, Status: api.ConditionTrue, Reason: api.ReasonDamaged,
			Message: "it is damaged in the store, and this is an earlier version: write it again with PUT, delete it, or restore a backup",
		})
	}
	if !v.faults.Any() { // usually; lists call this for every object
		return object
	}
	faults := v.faults.Faulted(key.String())
	if len(faults) == 0 {
		return object
	}
	if list := api.ConditionsOf(object); list != nil && api.FindCondition(*list, api.ConditionFaulted) != nil {
		return object // the consequences are already described
	}
	return api.CopyWith(object, api.Condition{
		Type: api.ConditionFaulted, Status: api.ConditionTrue, Reason: api.ReasonServerFault,
		Message: strings.Join(faults, "; ") + "; it is tried again",
	})
}

// nextFaulted waits until faulted would return something else because of panics, and returns the
// objects.
func (v *view) nextFaulted(ctx context.Context) ([]api.Key, error) {
	objects, err := v.faults.NextChanged(ctx)
	keys := make([]api.Key, 0, len(objects))
	for _, object := range objects {
		if key, ok := api.ParseKey(object); ok { // work on other things is recorded too
			keys = append(keys, key)
		}
	}
	return keys, err
}

func (v *view) completed(who auth.Identity, object api.Object) api.Object {
	switch o := object.(type) {
	case *api.PlacementScore:
		return v.decisions.Observe(o.Observed(v.now()))
	case *api.PropagationPolicy:
		return v.resolved(who, v.boundPolicy(who, o))
	case *api.Cluster:
		object = v.beats.Show(o)
	}
	return v.resolved(who, v.rights.Disclosed(who, v.decisions.Observe(object)))
}

// boundPolicy returns a policy with the bindings that a reader may see. It is always a copy:
// bindings change without a write to the policy, so it is never shown as stored.
func (v *view) boundPolicy(who auth.Identity, policy *api.PropagationPolicy) *api.PropagationPolicy {
	return who.VisibleBindings(v.decisions.ObservePolicy(policy))
}
