package karmada

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// epoch is the time of the first step of every case.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// seats is a resource of which each replica needs one, so that amounts are numbers of replicas.
const seats = "seats"

// Names for what a case does not name.
const (
	defaultPolicy   = "policy"
	defaultWorkload = "workload"
)

// object returns the cluster at a given time. Its report is newer than every earlier decision.
func (c *cluster) object(now time.Time) *api.Cluster {
	reported := now.Add(-time.Millisecond)
	o := &api.Cluster{Metadata: api.Metadata{Name: c.Name, UID: "uid-" + c.Name, Labels: c.Labels, Generation: 1, CreatedAt: &epoch, ModifiedAt: &epoch}}
	s := &o.Spec
	s.CloudProvider, s.Region, s.Zones, s.APIResources, s.Paused, s.Namespace = c.Provider, c.Region, c.Zones, c.APIs, c.Paused, c.Namespace
	o.Status.ObservedGeneration = 1
	for name, amount := range c.Allocatable {
		if s.Allocatable == nil {
			s.Allocatable = api.Quantities{}
		}
		s.Allocatable[name] = api.Quantity(amount)
	}
	if c.AvailableReplicas != nil {
		if s.Allocatable == nil {
			s.Allocatable = api.Quantities{}
		}
		s.Allocatable[seats] = api.Quantity(strconv.FormatInt(*c.AvailableReplicas, 10))
	}
	if s.Allocatable != nil {
		o.Status.CapacityReportedAt = &reported
	}
	for _, t := range c.Taints {
		added := now.Add(-time.Duration(t.AgeSeconds) * time.Second)
		effect := api.TaintEffect(t.Effect)
		s.Taints = append(s.Taints, api.Taint{Key: t.Key, Value: t.Value, Effect: effect})
		o.Status.Taints = append(o.Status.Taints, api.ClusterTaint{Key: t.Key, Value: t.Value, Effect: effect, TimeAdded: &added})
	}
	switch o.Status.State = api.ClusterState(c.State); o.Status.State {
	case api.StateOffline, api.StateConnecting:
		o.Status.Taints = append(o.Status.Taints, api.ClusterTaint{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &now})
	case api.StateUnhealthy, api.StateNotReady:
		o.Status.Taints = append(o.Status.Taints, api.ClusterTaint{Key: api.TaintUnhealthy, Effect: api.EffectNoSelect, TimeAdded: &now})
	case api.StateOnline, api.StatePending:
	}
	o.SetDefaults()
	return o
}

func (a *affinity) object() api.ClusterAffinity {
	o := api.ClusterAffinity{ClusterNames: a.ClusterNames, ExcludeClusters: a.Exclude, FieldSelector: a.FieldSelector}
	if a.MatchLabels != nil {
		o.LabelSelector = &api.LabelSelector{MatchLabels: a.MatchLabels}
	}
	return o
}

// object returns the policy. If it names no workloads, it selects the two kinds that workloads in the cases have.
func (p *policy) object(generation int64) *api.PropagationPolicy {
	o := &api.PropagationPolicy{Metadata: api.Metadata{Name: cmp.Or(p.Name, defaultPolicy), Namespace: api.DefaultNamespace, Generation: generation}}
	if p.Global {
		o.Metadata.Namespace = ""
	}
	o.Metadata.UID = "uid-" + o.Path()
	s := &o.Spec
	s.ResourceSelectors = p.Selectors
	if p.Selectors == nil {
		s.ResourceSelectors = []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "ConfigMap"}}
	}
	s.Priority, s.Preemption, s.WorkloadPreemption = p.Priority, p.Preemption, p.WorkloadPreemption
	s.Failover, s.FailBack = p.Failover, p.FailBack
	p.place(&s.Placement)
	o.SetDefaults()
	return o
}

func (p *policy) place(out *api.PropagationPlacement) {
	if p.ClusterAffinity != nil {
		a := p.ClusterAffinity.object()
		out.ClusterAffinity = &a
	}
	for i := range p.ClusterAffinities {
		t := &p.ClusterAffinities[i]
		group := api.AffinityTerm{AffinityName: t.Name, ClusterAffinity: t.object()}
		for j := range t.Overflow {
			group.OverflowAffinities = append(group.OverflowAffinities, api.OverflowAffinity{AffinityName: t.Overflow[j].Name, ClusterAffinity: t.Overflow[j].object()})
		}
		out.ClusterAffinities = append(out.ClusterAffinities, group)
	}
	for _, t := range p.Tolerations {
		out.ClusterTolerations = append(out.ClusterTolerations, api.Toleration{
			Key: t.Key, Operator: api.TolerationOperator(t.Operator), Value: t.Value,
			Effect: api.TaintEffect(t.Effect), TolerationSeconds: t.TolerationSeconds,
		})
	}
	for _, c := range p.SpreadConstraints {
		constraint := api.GroupConstraint{SpreadByField: c.By, SpreadByLabel: c.ByLabel, MinGroups: &c.Min}
		if c.Max != 0 {
			constraint.MaxGroups = &c.Max
		}
		out.SpreadConstraints = append(out.SpreadConstraints, constraint)
	}
	out.ReplicaScheduling, out.EmptyClusters = p.ReplicaScheduling.object(), p.EmptyClusters
}

func (r *replicaScheduling) object() *api.ReplicaScheduling {
	if r == nil {
		return nil
	}
	o := &api.ReplicaScheduling{Type: api.ReplicaSchedulingType(r.Type), DivisionPreference: api.DivisionPreference(r.Preference)}
	if r.StaticWeights != nil || r.DynamicWeight != "" {
		o.WeightPreference = &api.WeightPreference{DynamicWeight: r.DynamicWeight}
		for _, w := range r.StaticWeights {
			o.WeightPreference.StaticWeights = append(o.WeightPreference.StaticWeights, api.StaticWeight{Affinity: w.Target.object(), Weight: w.Weight})
		}
	}
	for _, l := range r.Limits {
		o.ClusterLimits = append(o.ClusterLimits, api.ClusterLimit{Affinity: l.Target.object(), MinReplicas: l.Min, MaxReplicas: l.Max})
	}
	return o
}

// object returns the workload before anything has been decided about it.
func (w *workload) object(generation int64) *api.Workload {
	name := cmp.Or(w.Name, defaultWorkload)
	o := &api.Workload{Metadata: api.Metadata{Name: name, Namespace: api.DefaultNamespace, Labels: w.Labels, UID: cmp.Or(w.UID, evenUID(name)), Generation: generation}}
	o.Spec = api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: &w.Replicas, Priority: w.Priority}
	o.Spec.ReplicaRequests = api.Quantities{seats: "1"}
	if w.Requests != nil {
		o.Spec.ReplicaRequests = api.Quantities{}
		for resource, amount := range w.Requests {
			o.Spec.ReplicaRequests[resource] = api.Quantity(amount)
		}
	}
	if !w.IsWorkload {
		o.Spec = api.WorkloadSpec{APIVersion: "v1", Kind: "ConfigMap", Priority: w.Priority}
	}
	o.Metadata.RescheduleRequests = w.reschedules
	if w.status != nil {
		o.Status = *w.status
	}
	o.SetDefaults()
	return o
}

// evenUID returns a UID with which ties for a replica go to the first name.
func evenUID(name string) string {
	for n := 0; ; n++ {
		uid := fmt.Sprintf("uid-%s-%d", name, n)
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(uid))
		if hash.Sum32()%2 == 0 {
			return uid
		}
	}
}
