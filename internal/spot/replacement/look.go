package replacement

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// forgetAfter is how long to wait for a pod to terminate.
const forgetAfter = 10 * time.Minute

// look checks one workload and does what is due. again is when to check again without a change, 0
// for never.
func (r *Replacement) look(ctx context.Context, key workloadKey) (again time.Duration, err error) {
	v, ok := r.inventory.View(key, r.Recreate)
	if !ok {
		r.missing(key)
		return 0, nil
	}
	now := r.Now()
	r.markGoing(key, &v, now)
	hold, until := r.hold(key, &v, now)
	c := split.Circumstances{Now: now, Hold: hold, MayReturn: func(p *split.Pod) bool {
		may, at := r.inventory.MayReturn(p.UID)
		again = sooner(again, at, now)
		return may
	}}
	plan := v.Next(c)
	for i := range v.Pods {
		if ends := v.Pods[i].Ends; !ends.IsZero() {
			again = sooner(again, ends.Add(-split.LastCall), now)
		}
	}
	if err = r.setCosts(ctx, key, &v); err != nil {
		plan.Message = joined(plan.Message, err.Error())
	}
	if plan.Replace != nil {
		if refused := r.replace(ctx, key, &v, &plan); refused == nil {
			v.Pods = gone(v.Pods, plan.Replace.UID)
		} else {
			again = busyPause
			if !errors.Is(refused, errBusy) {
				err = refused
			}
			plan.State, plan.Message = api.DistributionWaiting, refused.Error()
		}
	}
	again = sooner(again, v.Until, now)
	if plan.State == api.DistributionConverged || plan.State == api.DistributionDegraded {
		r.arrived(key)
	}
	again = sooner(again, until, now)
	r.tellOf(key, &v, plan)
	return again, err
}

// gone returns the pods with one of them marked as terminating.
func gone(pods []split.Pod, uid string) []split.Pod {
	for i := range pods {
		if pods[i].UID == uid {
			pods[i].Terminating = true
		}
	}
	return pods
}

// sooner returns the shorter of a delay, where 0 means none, and the time until at.
func sooner(pause time.Duration, at, now time.Time) time.Duration {
	wait := at.Sub(now)
	if at.IsZero() || wait <= 0 || pause > 0 && pause < wait {
		return pause
	}
	return wait
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// missing reports a workload that the cluster does not have.
func (r *Replacement) missing(key workloadKey) {
	r.mu.Lock()
	delete(r.going, key)
	r.mu.Unlock()
	if r.inventory.IsAsked(key) {
		r.tell(Report{Key: key, Source: api.DistributionOfWorkload, Distribution: api.ClusterDistribution{
			State: api.DistributionAbsent, Message: "the cluster has no such workload",
		}})
		return
	}
	r.tell(Report{Key: key, Gone: true})
}

// markGoing makes a pod whose eviction was requested count as terminating until it is gone.
func (r *Replacement) markGoing(key workloadKey, v *inventory.View, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, ok := r.going[key]
	if !ok {
		return
	}
	for i := range v.Pods {
		if types.UID(v.Pods[i].UID) == g.pod && now.Sub(g.at) < forgetAfter {
			v.Pods[i].Terminating = true
			return
		}
	}
	delete(r.going, key)
}

// tellOf reports an existing workload.
func (r *Replacement) tellOf(key workloadKey, v *inventory.View, plan split.Plan) {
	isSplit := false
	live := split.Live(v.Pods)
	d := api.ClusterDistribution{
		Replicas: v.Replicas, TargetOnDemand: v.Target.OnDemand, TargetSpot: v.Target.Spot, Mode: v.Target.Mode,
		OnDemand: live.OnDemand, Spot: live.Spot, State: plan.State, Message: plan.Message,
	}
	for i := range v.Pods {
		isSplit = isSplit || v.Pods[i].For != split.Unset
		if v.Pods[i].FallenBack() && !v.Pods[i].Terminating {
			d.FallenBack++
		}
	}
	if !v.Managed {
		d.TargetOnDemand, d.TargetSpot, d.Mode = 0, 0, api.ModeDefault
		if v.Invalid != "" {
			d.State, d.Message = api.DistributionBlocked, v.Invalid
		}
	}
	if !v.Managed && v.Invalid == "" && !v.Wanted && (!isSplit || !r.Recreate) {
		r.tell(Report{Key: key, Gone: true})
		return
	}
	r.mu.Lock()
	d.Replaced = r.done[key]
	r.mu.Unlock()
	source := v.Source
	switch {
	case source != "":
	case r.inventory.IsAsked(key):
		source = api.DistributionOfWorkload
	default:
		source = api.DistributionOfLabels
	}
	if !v.Managed {
		d.Message = joined(d.Message, v.Barred)
	}
	r.tell(Report{Key: key, Source: source, Distribution: d})
}
