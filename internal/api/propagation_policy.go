package api

import (
	"fmt"
	"regexp"
	"strings"
)

// PropagationPolicy says where the workloads that it selects run, and how their replicas are
// divided. A policy without a namespace applies to workloads in all namespaces.
type PropagationPolicy struct {
	Kind     Kind                    `json:"kind" enum:"propagation_policy"`
	Metadata Metadata                `json:"metadata"`
	Spec     PropagationPolicySpec   `json:"spec"`
	Status   PropagationPolicyStatus `json:"status,omitzero"`
}

// PropagationPolicySpec is the user's configuration of a policy.
type PropagationPolicySpec struct {
	ResourceSelectors  []ResourceSelector   `json:"resource_selectors" doc:"Workloads that the policy applies to. A workload must match at least one selector."`
	Placement          PropagationPlacement `json:"placement,omitzero" doc:"Where the workloads run. If omitted, on every visible cluster, each with all replicas."`
	Priority           int64                `json:"priority,omitempty" default:"0" doc:"If several policies select a workload, the one with the highest priority claims it. On equal priority, the most precise selector wins (by name, then by labels, then by kind), then the first policy by name. Policies in the workload's namespace come before global ones."`
	Preemption         Preemption           `json:"preemption,omitempty" enum:"Never,Always" default:"Never" doc:"'Always': the policy takes over workloads that another policy has claimed, if its own 'priority' is higher, or if it is namespaced and the other one is global. Every selector then needs a 'name'. 'Never': claims stay as they are."`
	WorkloadPreemption WorkloadPreemption   `json:"workload_preemption,omitempty" enum:"Never,LowerPriority" default:"Never" doc:"'LowerPriority': a workload that does not fit displaces workloads with a lower 'priority'. 'Never': it waits for room."`
	Failover           *Failover            `json:"failover,omitempty" doc:"How a workload leaves a cluster that is lost or on which it is unhealthy."`
	FailBack           *FailBack            `json:"fail_back,omitempty" doc:"Whether an earlier group of 'cluster_affinities' takes the workload back. If omitted, it does not."`
}

// Preemption says whether a policy takes over workloads that another policy has claimed.
type Preemption string

// Values of Preemption.
const (
	PreemptNever  Preemption = "Never"
	PreemptAlways Preemption = "Always"
)

// WorkloadPreemption says whether a workload may displace others.
type WorkloadPreemption string

// Values of WorkloadPreemption.
const (
	WorkloadPreemptionNever         WorkloadPreemption = "Never"
	WorkloadPreemptionLowerPriority WorkloadPreemption = "LowerPriority"
)

// ResourceSelector selects workloads.
type ResourceSelector struct {
	APIVersion    string         `json:"api_version" doc:"API version of the workload, such as 'apps/v1'."`
	Kind          string         `json:"kind" doc:"Kind of the workload, such as 'Deployment'."`
	Namespace     string         `json:"namespace,omitempty" doc:"Namespace of the workload. If omitted, the policy's own, or all namespaces for a global policy."`
	Name          string         `json:"name,omitempty" ref:"workload,sibling,optional" doc:"Name of the workload. If omitted, any name."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Conditions on the workload's labels. Ignored if 'name' is set."`
}

// PropagationPlacement says which clusters are chosen, and how replicas are divided among them.
type PropagationPlacement struct {
	ClusterAffinity    *ClusterAffinity   `json:"cluster_affinity,omitempty" doc:"Clusters to choose from. If neither this nor 'cluster_affinities' is set, every visible cluster."`
	ClusterAffinities  []AffinityTerm     `json:"cluster_affinities,omitempty" absent:"all clusters" doc:"Groups of clusters to choose from, in order of preference: the first group that can take the whole workload gets it. Cannot be combined with 'cluster_affinity'."`
	ClusterTolerations []Toleration       `json:"cluster_tolerations,omitempty" doc:"Taints that the workloads tolerate."`
	SpreadConstraints  []GroupConstraint  `json:"spread_constraints,omitempty" doc:"Over how many clusters, regions, zones, providers or values of a label a workload is spread. The constraints apply to the clusters that have replicas in the final result. If one uses a field other than 'cluster', there must also be one for 'cluster'."`
	ReplicaScheduling  *ReplicaScheduling `json:"replica_scheduling,omitempty" doc:"How replicas are divided among clusters. If omitted, every chosen cluster gets all of them ('Duplicated')."`
	EmptyClusters      bool               `json:"empty_clusters,omitempty" default:"false" doc:"If true, chosen clusters that get no replicas stay in the binding, with 0."`
}

// IsZero reports whether nothing is set: empty lists equal absent ones.
func (p *PropagationPlacement) IsZero() bool {
	return p.ClusterAffinity == nil && len(p.ClusterAffinities)+len(p.ClusterTolerations)+len(p.SpreadConstraints) == 0 &&
		p.ReplicaScheduling == nil && !p.EmptyClusters
}

// ClusterAffinity selects the clusters that meet all its conditions. Excluded clusters are never
// selected. An empty affinity selects every cluster.
type ClusterAffinity struct {
	ClusterNames    []string           `json:"cluster_names,omitempty" ref:"cluster" absent:"all clusters" doc:"Names of clusters."`
	ExcludeClusters []string           `json:"exclude_clusters,omitempty" ref:"cluster,optional" doc:"Names of clusters that are never chosen."`
	LabelSelector   *LabelSelector     `json:"label_selector,omitempty" doc:"Conditions on the cluster's labels."`
	FieldSelector   []FieldRequirement `json:"field_selector,omitempty" doc:"Conditions on the cluster's provider, region and zones, all of which must hold."`
}

// IsZero reports whether nothing is set: empty lists equal absent ones.
func (a *ClusterAffinity) IsZero() bool {
	return len(a.ClusterNames)+len(a.ExcludeClusters)+len(a.FieldSelector) == 0 && a.LabelSelector == nil
}

// FieldRequirement is a condition on a field of a cluster. A cluster in several zones meets In if
// one of them matches, and NotIn if none does.
type FieldRequirement struct {
	Key      string           `json:"key" enum:"provider,region,zone" doc:"Field of the cluster; 'provider' is its 'cloud_provider'."`
	Operator SelectorOperator `json:"operator" enum:"In,NotIn" doc:"How the field is compared. A cluster in several zones matches 'In' if any of them is listed, and 'NotIn' if none is."`
	Values   []string         `json:"values" doc:"Values to compare with."`
}

// AffinityTerm is a named affinity group.
type AffinityTerm struct {
	AffinityName string `json:"affinity_name" doc:"Name of the group: 1 to 32 characters, unique in the policy."`
	ClusterAffinity
	OverflowAffinities []OverflowAffinity `json:"overflow_affinities,omitempty" doc:"Further clusters, in order, for replicas that the group has no room for. They are given up in reverse order. Requires 'replica_scheduling' of type 'Divided' with 'Aggregated' or 'dynamic_weight'."`
}

// OverflowAffinity is a named tier of an affinity group.
type OverflowAffinity struct {
	AffinityName string `json:"affinity_name" doc:"Name of the tier, unique in the group."`
	ClusterAffinity
}

// Fields that group constraints group clusters by.
const (
	GroupByCluster  = "cluster"
	GroupByRegion   = "region"
	GroupByZone     = "zone"
	GroupByProvider = "provider"
)

// GroupConstraint limits how many groups of clusters a workload is spread over.
type GroupConstraint struct {
	SpreadByField string `json:"spread_by_field,omitempty" enum:"cluster,region,zone,provider" defaultBy:"spread_by_label =cluster" doc:"Field by which clusters are grouped. Cannot be combined with 'spread_by_label'."`
	SpreadByLabel string `json:"spread_by_label,omitempty" doc:"Label by which clusters are grouped: those with the same value form a group."`
	MinGroups     *int64 `json:"min_groups,omitempty" default:"1" minimum:"0" doc:"Smallest number of groups."`
	MaxGroups     *int64 `json:"max_groups,omitempty" minimum:"0" doc:"Largest number of groups. If omitted or '0', there is no limit."`
}

// ReplicaSchedulingType says whether the replicas are divided or duplicated.
type ReplicaSchedulingType string

// Types of replica scheduling.
const (
	Duplicated ReplicaSchedulingType = "Duplicated"
	Divided    ReplicaSchedulingType = "Divided"
)

// DivisionPreference is how replicas are divided.
type DivisionPreference string

// Division preferences.
const (
	Aggregated DivisionPreference = "Aggregated"
	Weighted   DivisionPreference = "Weighted"
)

// DynamicWeightAvailable weights clusters by the number of replicas that fit.
const DynamicWeightAvailable = "AvailableReplicas"

// ReplicaScheduling configures how replicas are divided among the chosen clusters.
type ReplicaScheduling struct {
	Type               ReplicaSchedulingType `json:"type,omitempty" enum:"Duplicated,Divided" default:"Divided" doc:"'Divided': the clusters share the replicas. 'Duplicated': each cluster gets all of them."`
	DivisionPreference DivisionPreference    `json:"division_preference,omitempty" enum:"Aggregated,Weighted" defaultBy:"type Divided=Weighted" doc:"For type 'Divided'. 'Weighted': by weight. 'Aggregated': on as few clusters as have room."`
	WeightPreference   *WeightPreference     `json:"weight_preference,omitempty" doc:"For 'division_preference' 'Weighted'. If omitted, all weights are equal."`
	ClusterLimits      []ClusterLimit        `json:"cluster_limits,omitempty" doc:"Limits on the replicas of individual clusters. If several match a cluster, the tightest apply."`
}

// WeightPreference configures the weights of clusters.
type WeightPreference struct {
	StaticWeights []StaticWeight `json:"static_weights,omitempty" doc:"Weights of clusters. If several match a cluster, the largest counts. A cluster that none matches gets no replicas, unless none matches any cluster."`
	DynamicWeight string         `json:"dynamic_weight,omitempty" enum:"AvailableReplicas" doc:"'AvailableReplicas': the weight of a cluster is the number of replicas that it has room for. Replaces 'static_weights'."`
}

// StaticWeight is the weight of the matching clusters.
type StaticWeight struct {
	Affinity ClusterAffinity `json:"affinity,omitzero" doc:"Clusters that have the weight. If omitted, every cluster."`
	Weight   int64           `json:"weight" minimum:"1" maximum:"2147483647" doc:"Weight of each of these clusters."`
}

// ClusterLimit limits the replicas on each matching cluster.
type ClusterLimit struct {
	Affinity    ClusterAffinity `json:"affinity,omitzero" doc:"Clusters that the limits apply to. If omitted, every cluster."`
	MinReplicas *int64          `json:"min_replicas,omitempty" minimum:"0" maximum:"2147483647" doc:"Smallest number of replicas on a cluster that is used."`
	MaxReplicas *int64          `json:"max_replicas,omitempty" minimum:"0" maximum:"2147483647" doc:"Largest number of replicas on a cluster."`
}

// Failover configures how a workload leaves a lost cluster, or one on which it is unhealthy.
type Failover struct {
	Cluster     *ClusterFailover     `json:"cluster,omitempty" doc:"What happens if a cluster goes offline, or gets a taint that evicts. If omitted, replicas are moved gracefully, with the defaults below."`
	Application *ApplicationFailover `json:"application,omitempty" doc:"What happens if the workload is reported unhealthy on a cluster. If omitted, it stays there."`
}

// ClusterFailover configures how a workload leaves a lost cluster.
type ClusterFailover struct {
	PurgeMode   PurgeMode `json:"purge_mode,omitempty" enum:"Directly,Gracefully" default:"Gracefully" doc:"'Gracefully': the replicas count as running until their replacements are healthy or 'grace_period' is over. 'Directly': they are removed at once."`
	GracePeriod Duration  `json:"grace_period,omitempty" defaultBy:"purge_mode Gracefully=10m" doc:"Time after which the replicas are removed in any case."`
}

// ApplicationFailover configures when and how a workload leaves a cluster on which it is unhealthy.
type ApplicationFailover struct {
	Toleration  Duration  `json:"toleration,omitempty" default:"5m" doc:"How long the workload may be unhealthy."`
	PurgeMode   PurgeMode `json:"purge_mode,omitempty" enum:"Directly,Gracefully,Never" default:"Gracefully" doc:"'Gracefully': the replicas count as running until their replacements are healthy or 'grace_period' is over. 'Directly': they are removed at once. 'Never': they stay until an explicit reschedule."`
	GracePeriod Duration  `json:"grace_period,omitempty" defaultBy:"purge_mode Gracefully=10m" doc:"Time after which the replicas are removed in any case."`
}

// FailBackMode says whether a workload returns to an earlier affinity group.
type FailBackMode string

// Fail-back modes.
const (
	FailBackNever     FailBackMode = "never"
	FailBackAutomatic FailBackMode = "automatic"
)

// FailBack configures when a workload returns to an earlier affinity group.
type FailBack struct {
	Mode          FailBackMode `json:"mode,omitempty" enum:"never,automatic" default:"automatic" doc:"'automatic': an earlier group takes the workload back once it could have taken it for the whole of 'stabilization'. 'never': only an explicit reschedule does."`
	Stabilization Duration     `json:"stabilization,omitempty" default:"10m" doc:"How long an earlier group must be able to take the workload."`
}

// PropagationPolicyStatus lists the bindings that follow the policy. It is not stored, because it
// is derived from the workloads.
type PropagationPolicyStatus struct {
	ObservedGeneration int64       `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	Conditions         []Condition `json:"conditions,omitempty" doc:"'ReferencesResolved' and 'WorkloadsSelected', if something is missing."`
	Bindings           []Binding   `json:"bindings,omitempty" doc:"Workloads that the policy has claimed, sorted by namespace and name."`
}

// Binding says where one workload runs.
type Binding struct {
	Workload         string            `json:"workload" doc:"The workload, as 'namespace/name'."`
	Clusters         []WorkloadCluster `json:"clusters" doc:"Chosen clusters, each with its replicas."`
	ObservedAffinity string            `json:"observed_affinity,omitempty" doc:"Affinity group that the clusters were chosen from."`
	Conditions       []Condition       `json:"conditions,omitempty" doc:"Conditions of the workload."`
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

// DefaultGracePeriod is how long the replicas on a lost cluster count as running, also used if a
// policy does not set it.
const DefaultGracePeriod Duration = "10m"

// SetDefaults implements Object.
func (p *PropagationPolicy) SetDefaults() {
	p.Kind = KindPropagationPolicy
	p.Metadata.setDefaults(GlobalOrNamespaced)
	for i := range p.Spec.Placement.SpreadConstraints {
		if c := &p.Spec.Placement.SpreadConstraints[i]; c.MinGroups != nil && *c.MinGroups == 0 {
			c.MinGroups = nil // 0 is the default
		}
	}
	setDefaults(&p.Spec)
}

// Max returns the maximum number of groups. ok is false if there is no limit.
func (c *GroupConstraint) Max() (groups int64, ok bool) {
	if c.MaxGroups == nil || *c.MaxGroups == 0 {
		return 0, false
	}
	return *c.MaxGroups, true
}

// By returns what the constraint groups clusters by, for messages: "region", `label "tier"`.
func (c *GroupConstraint) By() string {
	if c.SpreadByLabel != "" {
		return "label " + quote(c.SpreadByLabel)
	}
	return c.SpreadByField
}

// Path returns the policy as statuses name it: namespace/name, or the name of a global policy.
func (p *PropagationPolicy) Path() string { return KeyOf(p).Path() }

// PolicyKey returns the key of a policy from its path in a status.
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

// checkAPIVersion checks for the form of Kubernetes: "v1" or "apps/v1".
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
