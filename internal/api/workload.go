package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Workload is the template of something that runs on clusters, such as a Deployment. A propagation
// policy determines where; the status holds the binding.
type Workload struct {
	Kind     Kind           `json:"kind" enum:"workload"`
	Metadata Metadata       `json:"metadata"`
	Spec     WorkloadSpec   `json:"spec"`
	Status   WorkloadStatus `json:"status,omitzero"`
}

// WorkloadSpec describes what is to be placed.
type WorkloadSpec struct {
	APIVersion      string     `json:"api_version" doc:"API version of the resource, such as 'apps/v1'."`
	Kind            string     `json:"kind" doc:"Kind of the resource, such as 'Deployment'."`
	Replicas        *int64     `json:"replicas,omitempty" minimum:"0" maximum:"2147483647" doc:"Number of replicas to place. If omitted, the workload is not replicated: every chosen cluster gets a copy."`
	ReplicaRequests Quantities `json:"replica_requests,omitempty" doc:"Amounts that one replica needs, as Kubernetes quantities: '{ cpu = \"500m\", memory = \"1Gi\" }'. They are reserved on the chosen clusters."`
	Priority        int64      `json:"priority,omitempty" default:"0" doc:"Workloads with a higher priority are placed first."`

	Distribution *DistributionSpec `json:"distribution,omitempty" doc:"How the replicas are split between on-demand and spot nodes in each cluster that has 'spot' enabled. For 'Deployment' and 'StatefulSet' of 'apps/v1'. Takes precedence over labels in the cluster that request a split. '{}' requests the default split."`

	Allocation *AllocationSpec `json:"allocation,omitempty" doc:"Places the workload without a policy: none is needed, and none applies. The workload goes to sites, which are clusters with a region and a zone."`
}

// AllocationSpec says on which sites a workload is placed, and how its replicas are divided among
// them. A site is a cluster with a region and a zone.
type AllocationSpec struct {
	Flavors           []string           `json:"flavors,omitempty" doc:"Machine sizes for one replica, best first: a site uses the first one that it has room for, or, if the replicas do not fit on the sites like that, the first one with room for all of them or for the most. In addition to 'replica_requests'."`
	Machines          map[string]int64   `json:"machines,omitempty" minimum:"1" maximum:"100000" doc:"Further machines of one replica: how many of each flavor."`
	Regions           []AllocationRegion `json:"regions,omitempty" absent:"all regions" doc:"Regions where the sites may be."`
	GeoLocation       *GeoLocation       `json:"geo_location,omitempty" doc:"Where the sites must be. Each part that is set must equal the cluster's claim of the same name."`
	Operator          string             `json:"operator,omitempty" doc:"Operator of the sites: must equal the clusters' claim 'operator'."`
	SiteID            string             `json:"site_id,omitempty" doc:"A site, as '<region>--<zone>', or all sites of a region, as '<region>--'."`
	LocationStrategy  LocationStrategy   `json:"location_strategy,omitempty" enum:"centralize,discrete" default:"discrete" doc:"'discrete': the replicas are shared in proportion to the room at each site; a single replica goes to the best site. 'centralize': the best site is filled first."`
	RegionStrategy    RegionStrategy     `json:"region_strategy,omitempty" enum:"alone" doc:"'alone': all replicas go to one region, the one with the most room. If omitted, to any regions."`
	StackAffinity     []string           `json:"stack_affinity,omitempty" ref:"workload,own,optional" doc:"Workloads in the same namespace that this one prefers to be with."`
	StackAntiAffinity []string           `json:"stack_anti_affinity,omitempty" ref:"workload,own,optional" doc:"Workloads in the same namespace that this one prefers not to be with."`
}

// Machines returns the number of additional machines of each replica, by flavor.
func (s *WorkloadSpec) Machines() map[string]int64 {
	if s.Allocation == nil {
		return nil
	}
	return s.Allocation.Machines
}

// AllocationRegion is a region, or some zones of it.
type AllocationRegion struct {
	Region            string   `json:"region" doc:"Name of the region."`
	AvailabilityZones []string `json:"availability_zones,omitempty" absent:"the whole region" doc:"Zones in the region."`
}

// GeoLocation is a place on earth. Sites have it as claims with these names.
type GeoLocation struct {
	Country  string `json:"country,omitempty" doc:"Country."`
	Area     string `json:"area,omitempty" doc:"Area of the country."`
	Province string `json:"province,omitempty" doc:"Province."`
	City     string `json:"city,omitempty" doc:"City."`
}

// Claims of a cluster that hold a site's location and operator.
const (
	ClaimCountry  = "country"
	ClaimArea     = "area"
	ClaimProvince = "province"
	ClaimCity     = "city"
	ClaimOperator = "operator"
)

// Claims returns the parts that are set, by claim.
func (g *GeoLocation) Claims() map[string]string {
	out := map[string]string{}
	if g == nil {
		return out
	}
	for claim, value := range map[string]string{ClaimCountry: g.Country, ClaimArea: g.Area, ClaimProvince: g.Province, ClaimCity: g.City} {
		if value != "" {
			out[claim] = value
		}
	}
	return out
}

// LocationStrategy is how replicas are divided among sites.
type LocationStrategy string

// Location strategies.
const (
	LocationCentralize LocationStrategy = "centralize"
	LocationDiscrete   LocationStrategy = "discrete"
)

// RegionStrategy is how replicas are divided among regions.
type RegionStrategy string

// RegionAlone keeps all replicas in one region.
const RegionAlone RegionStrategy = "alone"

// MaxMachines is the maximum number of machines of one flavor per replica.
const MaxMachines = 100_000

// SiteID returns the ID of a site from its region and zone.
func SiteID(region, zone string) string { return region + "--" + zone }

func (a *AllocationSpec) validate(errs *FieldErrors, replicated bool) {
	const at = "spec.allocation"
	if !replicated {
		errs.Add("spec.replicas", "is required with spec.allocation")
	}
	checkUnique(errs, at+".flavors", a.Flavors)
	for i, flavor := range a.Flavors {
		errs.check(index(at+".flavors", i), checkText(flavor))
	}
	for _, flavor := range slices.Sorted(maps.Keys(a.Machines)) {
		under := at + ".machines[" + quote(flavor) + "]"
		errs.check(under, checkText(flavor))
	}
	for i, r := range a.Regions {
		errs.check(index(at+".regions", i)+".region", checkText(r.Region))
	}
	checkNames(errs, at+".stack_affinity", a.StackAffinity)
	checkNames(errs, at+".stack_anti_affinity", a.StackAntiAffinity)
}

// WorkloadStatus is the binding: where the workload runs, and why.
type WorkloadStatus struct {
	ObservedGeneration         int64             `json:"observed_generation,omitempty" doc:"Generation of the spec that the binding answers."`
	ObservedRescheduleRequests int64             `json:"observed_reschedule_requests,omitempty" doc:"Number of requests for a fresh decision that were answered."`
	Clusters                   []WorkloadCluster `json:"clusters,omitempty" doc:"Chosen clusters, sorted by name, each with its replicas."`
	// Policy is the policy that claimed the workload. Another policy takes over only by preemption,
	// or if this one no longer selects the workload.
	Policy            string            `json:"policy,omitempty" ref:"propagation_policy,path,optional" doc:"Policy that the binding follows: 'namespace/name', or the name of a global policy."`
	PolicyUID         string            `json:"policy_uid,omitempty" doc:"UID of the policy."`
	PolicyGeneration  int64             `json:"policy_generation,omitempty" doc:"Generation of the policy that the binding answers."`
	ObservedAffinity  string            `json:"observed_affinity,omitempty" doc:"Affinity group of the policy that the clusters were chosen from."`
	Evictions         []Eviction        `json:"evictions,omitempty" doc:"Clusters that the workload is leaving."`
	Preemptions       []PreemptedBy     `json:"preemptions,omitempty" doc:"Clusters from which workloads with a higher priority displaced this one since it last had all its replicas."`
	LostReplicas      int64             `json:"lost_replicas,omitempty" doc:"Replicas from lost clusters that no affinity group has room for yet."`
	Health            []ClusterHealth   `json:"health,omitempty" doc:"What was last reported about the workload on its clusters."`
	EarlierAffinities []EarlierAffinity `json:"earlier_affinities,omitempty" doc:"Groups before the observed one that could take the workload back, and since when."`
	// Distribution is reported from the clusters.
	Distribution     []ClusterDistribution `json:"distribution,omitempty" doc:"Observed split between on-demand and spot nodes, by cluster."`
	ScheduledAt      *time.Time            `json:"scheduled_at,omitempty" doc:"When the binding last changed."`
	DecisionRevision int64                 `json:"decision_revision,omitempty" doc:"Number of times that the binding has changed."`
	Cause            *Cause                `json:"cause,omitempty" doc:"What made the binding change last. Absent if nothing was decided yet."`
	Conditions       []Condition           `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// WorkloadCluster is one cluster of a binding.
type WorkloadCluster struct {
	Name     string     `json:"name" ref:"cluster,optional" doc:"Name of the cluster."`
	Replicas int64      `json:"replicas" doc:"Replicas on the cluster. 0 if the workload is not replicated."`
	OnDemand *int64     `json:"on_demand,omitempty" doc:"Replicas that go to on-demand nodes, if the workload has a distribution."`
	Spot     *int64     `json:"spot,omitempty" doc:"Replicas that go to spot nodes, if the workload has a distribution."`
	Flavor   string     `json:"flavor,omitempty" doc:"Flavor that each replica gets, if the workload asks for flavors."`
	Since    *time.Time `json:"since,omitempty" doc:"When the cluster got its current number of replicas."`
}

// PurgeMode is what happens to the replicas on a cluster that a workload leaves.
type PurgeMode string

// Purge modes.
const (
	// PurgeDirectly removes the replicas at once.
	PurgeDirectly PurgeMode = "Directly"
	// PurgeGracefully keeps them until their replacement is healthy or the grace period has passed.
	PurgeGracefully PurgeMode = "Gracefully"
	// PurgeNever keeps them until an explicit reschedule.
	PurgeNever PurgeMode = "Never"
)

// Eviction is a cluster that a workload is leaving. It gets no new replicas there meanwhile.
type Eviction struct {
	Cluster   string     `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Replicas  int64      `json:"replicas" doc:"Replicas that still run there."`
	Reason    string     `json:"reason" doc:"'ClusterLost', 'ApplicationUnhealthy', 'FailedOver' or 'FailedBack'."`
	Message   string     `json:"message,omitempty" doc:"What happened."`
	PurgeMode PurgeMode  `json:"purge_mode" enum:"Directly,Gracefully,Never" doc:"What happens to the replicas: 'Directly' (they are removed at once), 'Gracefully' or 'Never'."`
	Since     *time.Time `json:"since,omitempty" doc:"When the eviction began."`
	Until     *time.Time `json:"until,omitempty" doc:"When the replicas are removed at the latest."`
}

// PreemptedBy is a cluster that a workload of a higher priority has taken.
type PreemptedBy struct {
	Cluster  string     `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Replicas int64      `json:"replicas" doc:"Replicas that were displaced."`
	Workload string     `json:"workload,omitempty" ref:"workload,path,optional" doc:"Workload that displaced them, as 'namespace/name'. Absent if the reader may not read it."`
	Priority *int64     `json:"priority,omitempty" doc:"Priority of that workload. Absent if the reader may not read it."`
	At       *time.Time `json:"at,omitempty" doc:"When it happened."`
}

// Reasons of evictions.
const (
	// EvictedClusterLost: the cluster went offline, or got a taint that evicts.
	EvictedClusterLost = "ClusterLost"
	// EvictedApplicationUnhealthy: the workload was reported unhealthy on the cluster for too long.
	EvictedApplicationUnhealthy = "ApplicationUnhealthy"
	// EvictedFailedOver: the affinity group of the cluster could no longer hold the whole workload,
	// and a later group took over.
	EvictedFailedOver = "FailedOver"
	// EvictedFailedBack: the cluster is in a later affinity group, and the workload returns to an
	// earlier one.
	EvictedFailedBack = "FailedBack"
)

// HealthStatus is the health of a workload on a cluster.
type HealthStatus string

// Health statuses.
const (
	Healthy       HealthStatus = "healthy"
	Unhealthy     HealthStatus = "unhealthy"
	HealthUnknown HealthStatus = "unknown"
)

// ClusterHealth is the last report about a workload on one cluster.
type ClusterHealth struct {
	Cluster string       `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Status  HealthStatus `json:"status" enum:"healthy,unhealthy,unknown" doc:"Health of the workload on the cluster."`
	Message string       `json:"message,omitempty" doc:"What is wrong."`
	Since   *time.Time   `json:"since,omitempty" doc:"When the status last changed."`
	// ReportedAt is when a report last contained a change.
	ReportedAt *time.Time `json:"reported_at,omitempty" doc:"When the status was last reported after a change of the status or the binding."`
}

// HealthReport reports the health of a workload on one cluster. It is sent by an agent in the
// cluster or by an operator of the workload.
type HealthReport struct {
	Cluster string       `json:"cluster" doc:"Cluster that the report is about."`
	Status  HealthStatus `json:"status" enum:"healthy,unhealthy,unknown" doc:"Health of the workload on the cluster."`
	Message string       `json:"message,omitempty" maxLength:"1024" doc:"What is wrong."`
}

// SetDefaults accepts the status in any case.
func (r *HealthReport) SetDefaults() { r.Status = HealthStatus(strings.ToLower(string(r.Status))) }

// Validate returns all validation errors of the report. It expects SetDefaults to have run.
func (r *HealthReport) Validate() FieldErrors {
	var errs FieldErrors
	errs.check("cluster", checkName(r.Cluster))
	errs.checkFields("", r)
	return errs.inOrder(r)
}

// EarlierAffinity is an affinity group before the observed one that could hold the whole workload.
type EarlierAffinity struct {
	AffinityName  string     `json:"affinity_name" doc:"Name of the affinity group."`
	FeasibleSince *time.Time `json:"feasible_since,omitempty" doc:"Since when the group could take the whole workload."`
}

// APIResource returns the type of the resource as clusters list it: "apps/v1/Deployment".
func (s *WorkloadSpec) APIResource() string { return s.APIVersion + "/" + s.Kind }

// Replicated reports whether the number of replicas is set.
func (s *WorkloadSpec) Replicated() bool { return s.Replicas != nil }

// Answers reports whether the binding was made for the spec as it is now, and whether a fresh one was
// requested since.
func (s *WorkloadStatus) Answers(meta *Metadata) (answered, fresh bool) {
	return s.ObservedGeneration == meta.Generation, s.ObservedRescheduleRequests != meta.RescheduleRequests
}

// Agrees reports whether two statuses differ in nothing but the cause: which changes came together
// differs among servers.
func (s *WorkloadStatus) Agrees(other *WorkloadStatus) bool {
	alike := *s
	alike.Cause = other.Cause
	return reflect.DeepEqual(&alike, other)
}

// Names returns the names of the chosen clusters.
func (s *WorkloadStatus) Names() []string {
	names := make([]string, len(s.Clusters))
	for i, c := range s.Clusters {
		names[i] = c.Name
	}
	return names
}

// ReplicasByCluster returns the replicas of each cluster of the binding.
func (s *WorkloadStatus) ReplicasByCluster() map[string]int64 {
	replicas := make(map[string]int64, len(s.Clusters))
	for _, c := range s.Clusters {
		replicas[c.Name] = c.Replicas
	}
	return replicas
}

// RunsOn reports whether the workload has replicas on a cluster or is leaving it.
func (s *WorkloadStatus) RunsOn(cluster string) bool {
	return slices.ContainsFunc(s.Clusters, func(c WorkloadCluster) bool { return c.Name == cluster }) ||
		slices.ContainsFunc(s.Evictions, func(e Eviction) bool { return e.Cluster == cluster })
}

// Evicting returns the replicas that still run on clusters that the workload is leaving, by
// cluster. Replicas that are purged directly are not included.
func (s *WorkloadStatus) Evicting() map[string]int64 {
	replicas := make(map[string]int64, len(s.Evictions))
	for _, e := range s.Evictions {
		if e.PurgeMode != PurgeDirectly {
			replicas[e.Cluster] = e.Replicas
		}
	}
	return replicas
}

// HealthOn returns the last report about a cluster, or nil.
func (s *WorkloadStatus) HealthOn(cluster string) *ClusterHealth {
	i := slices.IndexFunc(s.Health, func(h ClusterHealth) bool { return h.Cluster == cluster })
	if i < 0 {
		return nil
	}
	return &s.Health[i]
}

// ObjectKind implements Object.
func (w *Workload) ObjectKind() Kind { return KindWorkload }

// Meta implements Object.
func (w *Workload) Meta() *Metadata { return &w.Metadata }

// SpecPart implements Object.
func (w *Workload) SpecPart() any { return &w.Spec }

// StatusPart implements Object.
func (w *Workload) StatusPart() any { return &w.Status }

// Copy implements Object.
func (w *Workload) Copy() Object { d := *w; return &d }

// Secrets implements Object.
func (w *Workload) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (w *Workload) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (w *Workload) SetDefaults() {
	w.Kind = KindWorkload
	w.Metadata.setDefaults(Namespaced)
	setDefaults(&w.Spec)
}

// maxReplicas is the limit of Kubernetes.
const maxReplicas = 1<<31 - 1

// Validate implements Object.
func (w *Workload) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(w, Namespaced)
	s := &w.Spec
	errs.check("spec.api_version", checkAPIVersion(s.APIVersion))
	errs.check("spec.kind", checkResourceKind(s.Kind))
	if s.Distribution != nil {
		s.Distribution.validate(&errs, s)
	}
	if s.Allocation != nil {
		s.Allocation.validate(&errs, s.Replicated())
	}
	return errs.inOrder(w)
}

// Validate returns all validation errors of the replicas in a status. Users can only pass a status
// to a simulation.
func (s *WorkloadStatus) Validate() FieldErrors {
	var errs FieldErrors
	check := func(field string, replicas int64) {
		if replicas < 0 || replicas > maxReplicas {
			errs.Add(field+".replicas", "%d must be from 0 to %d", replicas, maxReplicas)
		}
	}
	for i, c := range s.Clusters {
		check(index("status.clusters", i), c.Replicas)
	}
	for i, e := range s.Evictions {
		check(index("status.evictions", i), e.Replicas)
	}
	return errs
}
