package api

import (
	"fmt"
	"regexp"
	"strings"
)

// PropagationPolicy says where the workloads that it selects run, and how their
// replicas are divided. Without a namespace it is for workloads of all of them.
type PropagationPolicy struct {
	Kind     Kind                    `json:"kind" enum:"propagation_policy"`
	Metadata Metadata                `json:"metadata"`
	Spec     PropagationPolicySpec   `json:"spec"`
	Status   PropagationPolicyStatus `json:"status,omitzero"`
}

// PropagationPolicySpec is what the user asks for.
type PropagationPolicySpec struct {
	ResourceSelectors  []ResourceSelector   `json:"resource_selectors" doc:"Workloads that the policy is for; matching one selector is enough."`
	Placement          PropagationPlacement `json:"placement,omitzero" doc:"Where they run."`
	Priority           int64                `json:"priority,omitempty" doc:"Of several policies that select a workload the one with the highest number claims it; of equals the one that selects more precisely (by name, by labels, by kind), then the first by name. Default 0."`
	Preemption         Preemption           `json:"preemption,omitempty" enum:"Never,Always" doc:"Always: the policy takes over workloads that another one has claimed, if it has the higher priority, or is namespaced and the other global. Default Never."`
	WorkloadPreemption WorkloadPreemption   `json:"workload_preemption,omitempty" enum:"Never,LowerPriority" doc:"LowerPriority: a workload that does not fit takes the place of workloads of a lower priority. Default Never."`
	Failover           *Failover            `json:"failover,omitempty" doc:"What happens when a cluster is lost or the application fails on it."`
	FailBack           *FailBack            `json:"fail_back,omitempty" doc:"Whether an earlier affinity group takes the workload back. Absent = never."`
}

// Preemption says whether a policy takes over claimed workloads.
type Preemption string

// The kinds of claim preemption.
const (
	PreemptNever  Preemption = "Never"
	PreemptAlways Preemption = "Always"
)

// WorkloadPreemption says whether a workload takes the place of others.
type WorkloadPreemption string

// The kinds of workload preemption.
const (
	WorkloadPreemptionNever         WorkloadPreemption = "Never"
	WorkloadPreemptionLowerPriority WorkloadPreemption = "LowerPriority"
)

// ResourceSelector selects workloads.
type ResourceSelector struct {
	APIVersion    string         `json:"api_version"`
	Kind          string         `json:"kind"`
	Namespace     string         `json:"namespace,omitempty" doc:"Default: the policy's own; for a global policy all."`
	Name          string         `json:"name,omitempty" ref:"workload,sibling,optional" doc:"Absent = every name."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Conditions on the workload's labels; not looked at where name is given."`
}

// PropagationPlacement says which clusters are chosen, and how replicas are
// divided over them.
type PropagationPlacement struct {
	ClusterAffinity    *ClusterAffinity   `json:"cluster_affinity,omitempty" doc:"Clusters to choose from. Absent, like cluster_affinities = every visible cluster."`
	ClusterAffinities  []AffinityTerm     `json:"cluster_affinities,omitempty" doc:"Groups of clusters to choose from, in order of preference: the first that can take the workload does. Not together with cluster_affinity."`
	ClusterTolerations []Toleration       `json:"cluster_tolerations,omitempty" doc:"Taints that do not keep the workload off a cluster."`
	SpreadConstraints  []GroupConstraint  `json:"spread_constraints,omitempty" doc:"Over how many clusters, regions, zones, providers or values of a label the workload is spread."`
	ReplicaScheduling  *ReplicaScheduling `json:"replica_scheduling,omitempty" doc:"How replicas are divided. Absent = every chosen cluster gets all of them (Duplicated)."`
	EmptyClusters      bool               `json:"empty_clusters,omitempty" doc:"Chosen clusters that get no replica stay in the binding, with 0. Default false."`
}

// ClusterAffinity selects clusters: all that it says must hold, and excluded
// ones are out in any case. An empty one selects every cluster.
type ClusterAffinity struct {
	ClusterNames    []string           `json:"cluster_names,omitempty" ref:"cluster"`
	ExcludeClusters []string           `json:"exclude_clusters,omitempty" ref:"cluster,optional"`
	LabelSelector   *LabelSelector     `json:"label_selector,omitempty" doc:"Conditions on the cluster's labels."`
	FieldSelector   []FieldRequirement `json:"field_selector,omitempty" doc:"Conditions on the cluster's provider, region and zones."`
}

// FieldRequirement is one condition on a field of a cluster. A cluster in
// several zones meets In with one of them, and NotIn with none.
type FieldRequirement struct {
	Key      string           `json:"key" enum:"provider,region,zone" doc:"provider (the cluster's cloud_provider), region or zone."`
	Operator SelectorOperator `json:"operator" enum:"In,NotIn"`
	Values   []string         `json:"values"`
}

// AffinityTerm is a named group of clusters.
type AffinityTerm struct {
	AffinityName string `json:"affinity_name" doc:"1 to 32 characters, unique in the policy."`
	ClusterAffinity
	OverflowAffinities []OverflowAffinity `json:"overflow_affinities,omitempty" doc:"Further clusters, in order, for the replicas that the group itself has no room for; they are given up in reverse order. Needs Divided with Aggregated or dynamic weight."`
}

// OverflowAffinity is a named tier of an affinity group.
type OverflowAffinity struct {
	AffinityName string `json:"affinity_name"`
	ClusterAffinity
}

// The fields that group constraints divide clusters by.
const (
	GroupByCluster  = "cluster"
	GroupByRegion   = "region"
	GroupByZone     = "zone"
	GroupByProvider = "provider"
)

// GroupConstraint bounds over how many groups of clusters a workload is spread.
type GroupConstraint struct {
	SpreadByField string `json:"spread_by_field,omitempty" enum:"cluster,region,zone,provider" doc:"Default cluster, where spread_by_label is absent."`
	SpreadByLabel string `json:"spread_by_label,omitempty" doc:"Clusters with the same value of this label are a group."`
	MinGroups     *int64 `json:"min_groups,omitempty" doc:"Default 1."`
	MaxGroups     *int64 `json:"max_groups,omitempty" doc:"Absent or 0 = no limit."`
}

// ReplicaSchedulingType says whether clusters share the replicas.
type ReplicaSchedulingType string

// The types of replica scheduling.
const (
	Duplicated ReplicaSchedulingType = "Duplicated"
	Divided    ReplicaSchedulingType = "Divided"
)

// DivisionPreference says how replicas are divided.
type DivisionPreference string

// The preferences of division.
const (
	Aggregated DivisionPreference = "Aggregated"
	Weighted   DivisionPreference = "Weighted"
)

// DynamicWeightAvailable weighs clusters by how many replicas they have room
// for.
const DynamicWeightAvailable = "AvailableReplicas"

// ReplicaScheduling says how replicas are divided over the chosen clusters.
type ReplicaScheduling struct {
	Type               ReplicaSchedulingType `json:"type,omitempty" enum:"Duplicated,Divided" doc:"Divided (default): the clusters share the replicas. Duplicated: each gets all of them."`
	DivisionPreference DivisionPreference    `json:"division_preference,omitempty" enum:"Aggregated,Weighted" doc:"Of Divided. Weighted (default): by weight. Aggregated: on as few clusters as have room."`
	WeightPreference   *WeightPreference     `json:"weight_preference,omitempty" doc:"Of Weighted. Absent = equal weights."`
	ClusterLimits      []ClusterLimit        `json:"cluster_limits,omitempty" doc:"Bounds on the replicas of single clusters; of several that match the tightest counts."`
}

// WeightPreference says what weight clusters have.
type WeightPreference struct {
	StaticWeights []StaticWeight `json:"static_weights,omitempty" doc:"Of several that match a cluster the largest counts; a cluster that none matches gets nothing, unless none matches any."`
	DynamicWeight string         `json:"dynamic_weight,omitempty" enum:"AvailableReplicas" doc:"AvailableReplicas: by how many replicas a cluster has room for. Takes the place of static_weights."`
}

// StaticWeight is the weight of the clusters that match.
type StaticWeight struct {
	Affinity ClusterAffinity `json:"affinity,omitzero"`
	Weight   int64           `json:"weight" doc:"At least 1."`
}

// ClusterLimit bounds the replicas of each cluster that matches.
type ClusterLimit struct {
	Affinity    ClusterAffinity `json:"affinity,omitzero"`
	MinReplicas *int64          `json:"min_replicas,omitempty" doc:"A cluster that is used gets at least as many."`
	MaxReplicas *int64          `json:"max_replicas,omitempty"`
}

// Failover says how a workload leaves a cluster that is lost, or on which it
// does not work.
type Failover struct {
	Cluster     *ClusterFailover     `json:"cluster,omitempty" doc:"When a cluster goes offline, or gets a taint that evicts."`
	Application *ApplicationFailover `json:"application,omitempty" doc:"When the workload is reported unhealthy on a cluster. Absent = it stays there."`
}

// ClusterFailover says how a workload leaves a lost cluster.
type ClusterFailover struct {
	PurgeMode   PurgeMode `json:"purge_mode,omitempty" enum:"Directly,Gracefully" doc:"Gracefully (default): the replicas there count as running until their replacement is healthy or grace_period is over. Directly: they are gone at once."`
	GracePeriod Duration  `json:"grace_period,omitempty" doc:"Default \"10m\"."`
}

// ApplicationFailover says when and how a workload leaves a cluster on which it
// is unhealthy.
type ApplicationFailover struct {
	Toleration  Duration  `json:"toleration,omitempty" doc:"For how long it may be unhealthy. Default \"5m\"."`
	PurgeMode   PurgeMode `json:"purge_mode,omitempty" enum:"Directly,Gracefully,Never" doc:"Gracefully (default), Directly, or Never: the replicas stay until an explicit reschedule."`
	GracePeriod Duration  `json:"grace_period,omitempty" doc:"Of Gracefully. Default \"10m\"."`
}

// FailBackMode says whether an earlier affinity group takes a workload back.
type FailBackMode string

// The modes of fail-back.
const (
	FailBackNever     FailBackMode = "never"
	FailBackAutomatic FailBackMode = "automatic"
)

// FailBack says when an earlier affinity group takes a workload back.
type FailBack struct {
	Mode          FailBackMode `json:"mode,omitempty" enum:"never,automatic" doc:"automatic (default): once it could have taken the workload for the whole of stabilization. never: only an explicit reschedule does."`
	Stabilization Duration     `json:"stabilization,omitempty" doc:"Default \"10m\"."`
}

// PropagationPolicyStatus shows the bindings that follow the policy. It is not
// stored: it follows from the workloads.
type PropagationPolicyStatus struct {
	ObservedGeneration int64       `json:"observed_generation,omitempty"`
	Conditions         []Condition `json:"conditions,omitempty" doc:"ReferencesResolved and WorkloadsSelected, where something is missing."`
	Bindings           []Binding   `json:"bindings,omitempty" doc:"Workloads that the policy has claimed, by namespace and name."`
}

// Binding is where one workload runs.
type Binding struct {
	Workload         string            `json:"workload" doc:"namespace/name."`
	Clusters         []WorkloadCluster `json:"clusters"`
	ObservedAffinity string            `json:"observed_affinity,omitempty"`
	Conditions       []Condition       `json:"conditions,omitempty"`
}

// ObjectKind implements Object.
func (p *PropagationPolicy) ObjectKind() Kind { return KindPropagationPolicy }

// Meta implements Object.
func (p *PropagationPolicy) Meta() *Metadata { return &p.Metadata }

// SpecPart implements Object.
func (p *PropagationPolicy) SpecPart() any { return &p.Spec }

// StatusPart implements Object.
func (p *PropagationPolicy) StatusPart() any { return &p.Status }

// Copy implements Object.
func (p *PropagationPolicy) Copy() Object { d := *p; return &d }

// Secrets implements Object.
func (p *PropagationPolicy) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (p *PropagationPolicy) SetSecret(string, Secret) {}

// The defaults of failover and fail-back.
const (
	DefaultGracePeriod   Duration = "10m"
	DefaultToleration    Duration = "5m"
	DefaultStabilization Duration = "10m"
)

// SetDefaults implements Object.
func (p *PropagationPolicy) SetDefaults() {
	p.Kind = KindPropagationPolicy
	p.Metadata.setDefaults(GlobalOrNamespaced)
	s := &p.Spec
	if s.Preemption == "" {
		s.Preemption = PreemptNever
	}
	if s.WorkloadPreemption == "" {
		s.WorkloadPreemption = WorkloadPreemptionNever
	}
	setTolerationDefaults(s.Placement.ClusterTolerations)
	for i := range s.Placement.SpreadConstraints {
		s.Placement.SpreadConstraints[i].setDefaults()
	}
	if r := s.Placement.ReplicaScheduling; r != nil {
		if r.Type == "" {
			r.Type = Divided
		}
		if r.Type == Divided && r.DivisionPreference == "" {
			r.DivisionPreference = Weighted
		}
	}
	s.Failover.setDefaults()
	if b := s.FailBack; b != nil {
		if b.Mode == "" {
			b.Mode = FailBackAutomatic
		}
		if b.Stabilization == "" {
			b.Stabilization = DefaultStabilization
		}
	}
}

func (f *Failover) setDefaults() {
	if f == nil {
		return
	}
	if c := f.Cluster; c != nil {
		if c.PurgeMode == "" {
			c.PurgeMode = PurgeGracefully
		}
		if c.GracePeriod == "" && c.PurgeMode == PurgeGracefully {
			c.GracePeriod = DefaultGracePeriod
		}
	}
	if a := f.Application; a != nil {
		if a.Toleration == "" {
			a.Toleration = DefaultToleration
		}
		if a.PurgeMode == "" {
			a.PurgeMode = PurgeGracefully
		}
		if a.GracePeriod == "" && a.PurgeMode == PurgeGracefully {
			a.GracePeriod = DefaultGracePeriod
		}
	}
}

func (c *GroupConstraint) setDefaults() {
	if c.SpreadByField == "" && c.SpreadByLabel == "" {
		c.SpreadByField = GroupByCluster
	}
	if c.MinGroups == nil || *c.MinGroups == 0 {
		one := int64(1)
		c.MinGroups = &one
	}
}

// Max is the largest number of groups; ok is false where there is no limit.
func (c *GroupConstraint) Max() (groups int64, ok bool) {
	if c.MaxGroups == nil || *c.MaxGroups == 0 {
		return 0, false
	}
	return *c.MaxGroups, true
}

// By names what the constraint groups clusters by, for messages: "region",
// `label "tier"`.
func (c *GroupConstraint) By() string {
	if c.SpreadByLabel != "" {
		return "label " + quote(c.SpreadByLabel)
	}
	return c.SpreadByField
}

// Path is how statuses name the policy: namespace/name, or the name of a global
// one.
func (p *PropagationPolicy) Path() string { return KeyOf(p).Path() }

// PolicyKey is the key of a policy that a status names.
func PolicyKey(path string) Key {
	namespace, name, ok := strings.Cut(path, "/")
	if !ok {
		namespace, name = "", path
	}
	return Key{Kind: KindPropagationPolicy, Namespace: namespace, Name: name}
}

var (
	apiVersionShape   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$`)
	resourceKindShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

// checkAPIVersion applies Kubernetes' form, "v1" or "apps/v1".
func checkAPIVersion(text string) string {
	switch {
	case text == "":
		return "is required"
	case len(text) > 253 || !apiVersionShape.MatchString(text):
		return fmt.Sprintf("%q must be a version, or a group and a version, such as \"v1\" or \"apps/v1\"", text)
	}
	return ""
}

func checkResourceKind(text string) string {
	switch {
	case text == "":
		return "is required"
	case len(text) > 63 || !resourceKindShape.MatchString(text):
		return fmt.Sprintf("%q must be the kind of a resource in letters and digits, such as \"Deployment\"", text)
	}
	return ""
}
