package api

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Workload is the template of something that runs on clusters, such as a
// Deployment. A propagation policy says where; the status is the binding.
type Workload struct {
	Kind     Kind           `json:"kind" enum:"workload"`
	Metadata Metadata       `json:"metadata"`
	Spec     WorkloadSpec   `json:"spec"`
	Status   WorkloadStatus `json:"status,omitzero"`
}

// WorkloadSpec says what is to be placed.
type WorkloadSpec struct {
	APIVersion      string     `json:"api_version" doc:"Group and version of the resource, such as \"apps/v1\"."`
	Kind            string     `json:"kind" doc:"Kind of the resource, such as \"Deployment\"."`
	Replicas        *int64     `json:"replicas,omitempty" doc:"How many replicas to place. Absent = not replicated: every chosen cluster gets a copy."`
	ReplicaRequests Quantities `json:"replica_requests,omitempty" doc:"What one replica needs, by resource; reserved on the chosen clusters."`
	Priority        int64      `json:"priority,omitempty" doc:"Workloads with a higher number are placed first. Default 0."`

	Distribution *DistributionSpec `json:"distribution,omitempty" doc:"How the replicas are split over on-demand and spot nodes, inside each cluster that has spot enabled."`

	Allocation *AllocationSpec `json:"allocation,omitempty" doc:"Places the workload by itself, as the Arktos global scheduler does; no policy is needed, and none applies."`
}

// AllocationSpec says on which sites, which are clusters with a region and a
// zone, a workload is placed, and how its replicas are divided over them.
type AllocationSpec struct {
	Flavors           []string           `json:"flavors,omitempty" doc:"Sizes of machines for one replica, the best first: a site takes the first that it has room for. In addition to replica_requests."`
	Machines          map[string]int64   `json:"machines,omitempty" doc:"Further machines of one replica: how many of each size, by the name of the flavor."`
	Regions           []AllocationRegion `json:"regions,omitempty" doc:"Where the sites may be: in any of these. Absent = anywhere."`
	GeoLocation       *GeoLocation       `json:"geo_location,omitempty" doc:"Where the sites have to be: what is given must be equal."`
	Operator          string             `json:"operator,omitempty" doc:"Who runs the sites."`
	SiteID            string             `json:"site_id,omitempty" doc:"A site, as <region>--<zone>, or with <region>-- all of a region."`
	LocationStrategy  LocationStrategy   `json:"location_strategy,omitempty" enum:"centralize,discrete" doc:"centralize: fill the best site first. discrete (default): share by how many each site has room for; a single replica goes to the best site."`
	RegionStrategy    RegionStrategy     `json:"region_strategy,omitempty" enum:"alone" doc:"alone: all replicas in one region, the one with the most room."`
	StackAffinity     []string           `json:"stack_affinity,omitempty" ref:"workload,own,optional" doc:"Workloads of the namespace that this one prefers to be with."`
	StackAntiAffinity []string           `json:"stack_anti_affinity,omitempty" ref:"workload,own,optional" doc:"Workloads of the namespace that it prefers not to be with."`
}

// Machines are those that each replica consists of besides its own, by flavor.
func (s *WorkloadSpec) Machines() map[string]int64 {
	if s.Allocation == nil {
		return nil
	}
	return s.Allocation.Machines
}

// AllocationRegion is a region, or zones of it.
type AllocationRegion struct {
	Region            string   `json:"region"`
	AvailabilityZones []string `json:"availability_zones,omitempty" doc:"Absent = the whole region."`
}

// GeoLocation is a place on earth. Sites have theirs as claims of these names.
type GeoLocation struct {
	Country  string `json:"country,omitempty"`
	Area     string `json:"area,omitempty"`
	Province string `json:"province,omitempty"`
	City     string `json:"city,omitempty"`
}

// The claims of a cluster that a site's place and operator are kept in.
const (
	ClaimCountry  = "country"
	ClaimArea     = "area"
	ClaimProvince = "province"
	ClaimCity     = "city"
	ClaimOperator = "operator"
)

// Claims are the parts that are given, by the claim that holds them.
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

// LocationStrategy says how replicas are shared by sites.
type LocationStrategy string

// The location strategies.
const (
	LocationCentralize LocationStrategy = "centralize"
	LocationDiscrete   LocationStrategy = "discrete"
)

// RegionStrategy says how replicas are shared by regions.
type RegionStrategy string

// RegionAlone keeps all replicas in one region.
const RegionAlone RegionStrategy = "alone"

// MaxMachines is how many machines of one flavor a replica may consist of.
const MaxMachines = 100_000

// SiteID names a site by its region and zone.
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
		if n := a.Machines[flavor]; n < 1 || n > MaxMachines {
			errs.Add(under, "%d must be from 1 to %d", n, MaxMachines)
		}
	}
	for i, r := range a.Regions {
		errs.check(index(at+".regions", i)+".region", checkText(r.Region))
	}
	errs.check(at+".location_strategy", oneOf(a.LocationStrategy, LocationCentralize, LocationDiscrete))
	if a.RegionStrategy != "" {
		errs.check(at+".region_strategy", oneOf(a.RegionStrategy, RegionAlone))
	}
	checkNames(errs, at+".stack_affinity", a.StackAffinity)
	checkNames(errs, at+".stack_anti_affinity", a.StackAntiAffinity)
}

// WorkloadStatus is the binding: where the workload runs, and why.
type WorkloadStatus struct {
	ObservedGeneration         int64             `json:"observed_generation,omitempty" doc:"Generation of the spec that the binding answers."`
	ObservedRescheduleRequests int64             `json:"observed_reschedule_requests,omitempty"`
	Clusters                   []WorkloadCluster `json:"clusters,omitempty" doc:"Chosen clusters by name, each with its replicas."`
	// Policy is the claim: another policy takes the workload over only by
	// preemption, or when this one no longer selects it.
	Policy            string            `json:"policy,omitempty" ref:"propagation_policy,path,optional" doc:"Policy that the binding follows: namespace/name, or the name of a global one."`
	PolicyUID         string            `json:"policy_uid,omitempty"`
	PolicyGeneration  int64             `json:"policy_generation,omitempty" doc:"Generation of the policy that the binding answers."`
	ObservedAffinity  string            `json:"observed_affinity,omitempty" doc:"Affinity group of the policy that the clusters were chosen from."`
	Evictions         []Eviction        `json:"evictions,omitempty" doc:"Clusters that the workload is leaving."`
	Preemptions       []PreemptedBy     `json:"preemptions,omitempty" doc:"Clusters that workloads of a higher priority took from this one since it was last complete."`
	LostReplicas      int64             `json:"lost_replicas,omitempty" doc:"Replicas of clusters that were lost, which no affinity group has room for yet."`
	Health            []ClusterHealth   `json:"health,omitempty" doc:"What was last reported about the workload on its clusters."`
	EarlierAffinities []EarlierAffinity `json:"earlier_affinities,omitempty" doc:"Groups before the observed one that could take the workload back, and since when."`
	// Distribution is what the watchers of the clusters report.
	Distribution     []ClusterDistribution `json:"distribution,omitempty" doc:"What was observed of the split over on-demand and spot nodes, by cluster."`
	ScheduledAt      *time.Time            `json:"scheduled_at,omitempty" doc:"When the binding last changed."`
	DecisionRevision int64                 `json:"decision_revision,omitempty" doc:"Counts the changes of the binding."`
	Conditions       []Condition           `json:"conditions,omitempty"`
}

// WorkloadCluster is one cluster of a binding.
type WorkloadCluster struct {
	Name     string     `json:"name" ref:"cluster,optional"`
	Replicas int64      `json:"replicas" doc:"0 where the workload is not replicated."`
	OnDemand *int64     `json:"on_demand,omitempty" doc:"Replicas that go to on-demand nodes, where the workload has a distribution."`
	Spot     *int64     `json:"spot,omitempty" doc:"Replicas that go to spot nodes, likewise."`
	Flavor   string     `json:"flavor,omitempty" doc:"Size of machines that each replica gets, where the workload asks for flavors."`
	Since    *time.Time `json:"since,omitempty" doc:"When the cluster got its present number of replicas."`
}

// PurgeMode says what becomes of the replicas on a cluster that a workload has
// to leave.
type PurgeMode string

// The purge modes.
const (
	// PurgeDirectly removes the replicas at once.
	PurgeDirectly PurgeMode = "Directly"
	// PurgeGracefully keeps them until their replacement is healthy, or the grace
	// period is over.
	PurgeGracefully PurgeMode = "Gracefully"
	// PurgeNever keeps them until an explicit reschedule.
	PurgeNever PurgeMode = "Never"
)

// Eviction is a cluster that a workload is leaving. It gets no new replicas
// there meanwhile.
type Eviction struct {
	Cluster   string     `json:"cluster" ref:"cluster,optional"`
	Replicas  int64      `json:"replicas" doc:"Replicas that still run there."`
	Reason    string     `json:"reason" doc:"ClusterLost, ApplicationUnhealthy, FailedOver or FailedBack."`
	Message   string     `json:"message,omitempty"`
	PurgeMode PurgeMode  `json:"purge_mode" enum:"Directly,Gracefully,Never"`
	Since     *time.Time `json:"since,omitempty"`
	Until     *time.Time `json:"until,omitempty" doc:"When the replicas go at the latest."`
}

// PreemptedBy is a cluster that a workload of a higher priority took.
type PreemptedBy struct {
	Cluster  string     `json:"cluster" ref:"cluster,optional"`
	Replicas int64      `json:"replicas" doc:"Replicas that had to go."`
	Workload string     `json:"workload,omitempty" ref:"workload,path,optional" doc:"The workload that took their place: namespace/name. Absent for who may not read it."`
	Priority *int64     `json:"priority,omitempty" doc:"Its priority. Absent for who may not read it."`
	At       *time.Time `json:"at,omitempty"`
}

// The reasons of evictions.
const (
	// EvictedClusterLost is a cluster that went offline, or got a taint that
	// evicts.
	EvictedClusterLost = "ClusterLost"
	// EvictedApplicationUnhealthy is a cluster on which the workload was reported
	// unhealthy for too long.
	EvictedApplicationUnhealthy = "ApplicationUnhealthy"
	// EvictedFailedOver is a cluster left because its affinity group could not
	// hold the whole workload any more, and a later group took it.
	EvictedFailedOver = "FailedOver"
	// EvictedFailedBack is a cluster of a later affinity group, left because an
	// earlier one takes the workload back.
	EvictedFailedBack = "FailedBack"
)

// HealthStatus is how a workload is doing on a cluster.
type HealthStatus string

// The health states.
const (
	Healthy       HealthStatus = "healthy"
	Unhealthy     HealthStatus = "unhealthy"
	HealthUnknown HealthStatus = "unknown"
)

// ClusterHealth is what was last reported about a workload on one cluster.
type ClusterHealth struct {
	Cluster string       `json:"cluster" ref:"cluster,optional"`
	Status  HealthStatus `json:"status" enum:"healthy,unhealthy,unknown"`
	Message string       `json:"message,omitempty"`
	Since   *time.Time   `json:"since,omitempty" doc:"Since when the status is what it is."`
	// ReportedAt is when the last report told something new.
	ReportedAt *time.Time `json:"reported_at,omitempty" doc:"When the status was last reported after it, or the binding, had changed."`
}

// HealthReport says how a workload is doing on one cluster. Writers of reports
// are agents of the cluster, or whoever looks after the workload.
type HealthReport struct {
	Cluster string       `json:"cluster" doc:"Cluster that the report is about."`
	Status  HealthStatus `json:"status" enum:"healthy,unhealthy,unknown"`
	Message string       `json:"message,omitempty" doc:"What is wrong, at most 1024 characters."`
}

// maxReportMessage bounds what a report may say.
const maxReportMessage = 1024

// SetDefaults reads the status in any case.
func (r *HealthReport) SetDefaults() { r.Status = HealthStatus(strings.ToLower(string(r.Status))) }

// Validate returns every rule the report breaks. It expects SetDefaults to have
// run.
func (r *HealthReport) Validate() FieldErrors {
	var errs FieldErrors
	errs.check("cluster", checkName(r.Cluster))
	errs.check("status", oneOf(r.Status, Healthy, Unhealthy, HealthUnknown))
	checkLength(&errs, "message", r.Message)
	return errs
}

// EarlierAffinity is an affinity group before the observed one that could take
// the whole workload.
type EarlierAffinity struct {
	AffinityName  string     `json:"affinity_name"`
	FeasibleSince *time.Time `json:"feasible_since,omitempty"`
}

// APIResource is the resource's type as clusters list it: "apps/v1/Deployment".
func (s *WorkloadSpec) APIResource() string { return s.APIVersion + "/" + s.Kind }

// Replicated reports whether the workload has a number of replicas.
func (s *WorkloadSpec) Replicated() bool { return s.Replicas != nil }

// Names are the names of the chosen clusters.
func (s *WorkloadStatus) Names() []string {
	names := make([]string, len(s.Clusters))
	for i, c := range s.Clusters {
		names[i] = c.Name
	}
	return names
}

// RunsOn reports whether the workload has replicas on a cluster, or is leaving it.
func (s *WorkloadStatus) RunsOn(cluster string) bool {
	return slices.ContainsFunc(s.Clusters, func(c WorkloadCluster) bool { return c.Name == cluster }) ||
		slices.ContainsFunc(s.Evictions, func(e Eviction) bool { return e.Cluster == cluster })
}

// Evicting are the replicas, by cluster, that go on running on clusters that the
// workload is leaving. What is purged directly does not.
func (s *WorkloadStatus) Evicting() map[string]int64 {
	replicas := make(map[string]int64, len(s.Evictions))
	for _, e := range s.Evictions {
		if e.PurgeMode != PurgeDirectly {
			replicas[e.Cluster] = e.Replicas
		}
	}
	return replicas
}

// HealthOn is what was last reported about a cluster, nil where nothing was.
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
	if a := w.Spec.Allocation; a != nil && a.LocationStrategy == "" {
		a.LocationStrategy = LocationDiscrete
	}
}

// maxReplicas is what Kubernetes counts replicas in.
const maxReplicas = 1<<31 - 1

// Validate implements Object.
func (w *Workload) Validate() FieldErrors {
	var errs FieldErrors
	w.Metadata.validate(Namespaced, &errs)
	s := &w.Spec
	errs.check("spec.api_version", checkAPIVersion(s.APIVersion))
	errs.check("spec.kind", checkResourceKind(s.Kind))
	if s.Replicas != nil && (*s.Replicas < 0 || *s.Replicas > maxReplicas) {
		errs.Add("spec.replicas", "%d must be from 0 to %d", *s.Replicas, maxReplicas)
	}
	validateQuantities(&errs, "spec.replica_requests", s.ReplicaRequests)
	if s.Distribution != nil {
		s.Distribution.validate(&errs, s)
	}
	if s.Allocation != nil {
		s.Allocation.validate(&errs, s.Replicated())
	}
	return errs
}

// Validate returns every rule that the replicas in a status break. A status is
// given only to a simulation.
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
