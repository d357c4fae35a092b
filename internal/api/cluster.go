package api

import (
	"cmp"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// Cluster is a target of placements: a Kubernetes cluster or anything else that
// takes workloads.
type Cluster struct {
	Kind     Kind          `json:"kind" enum:"cluster"`
	Metadata Metadata      `json:"metadata"`
	Spec     ClusterSpec   `json:"spec"`
	Status   ClusterStatus `json:"status,omitzero"`
}

// ClusterSpec is what the owner of a cluster declares.
type ClusterSpec struct {
	Namespace       string            `json:"namespace,omitempty" doc:"Namespace that owns the cluster: only placements of this namespace see it. If omitted, all do."`
	Namespaces      []string          `json:"namespaces,omitempty" absent:"a cluster without an owner" doc:"Namespaces that own the cluster, if there are several: only placements of these namespaces see it. Cannot be combined with 'namespace'."`
	Description     string            `json:"description,omitempty" maxLength:"1024" doc:"Free text about the cluster. Shown in explanations and lists."`
	CloudProvider   string            `json:"cloud_provider,omitempty" doc:"Provider of the cluster's machines, such as 'aws'."`
	Region          string            `json:"region,omitempty" doc:"Region that the cluster is in."`
	Zones           []string          `json:"zones,omitempty" doc:"Availability zones that the cluster spans."`
	Claims          map[string]string `json:"claims,omitempty" maxLength:"1024" doc:"Facts about the cluster by name, such as its version or platform. Matched by the claim selectors of placements."`
	Taints          []Taint           `json:"taints,omitempty" doc:"Taints keep placements that do not tolerate them off the cluster."`
	CustomResources []string          `json:"custom_resources,omitempty" doc:"Custom resource definitions in the cluster, as '<plural>.<group>'."`
	APIResources    []string          `json:"api_resources,omitempty" absent:"workloads of all types" doc:"Types of resources that the cluster accepts, as '<api version>/<kind>': 'apps/v1/Deployment'. Only workloads of these types are placed on it."`
	Metrics         []MetricRef       `json:"metrics,omitempty" doc:"Metrics that rate the cluster."`
	Capacity        Quantities        `json:"capacity,omitempty" doc:"Total amount of each resource, as Kubernetes quantities: '{ cpu = \"64\", memory = \"256Gi\" }'."`
	Allocatable     Quantities        `json:"allocatable,omitempty" doc:"Amount of each resource that workloads may use."`
	Allocated       Quantities        `json:"allocated,omitempty" doc:"Amount of each resource in use. Writing it is a capacity report: reservations for earlier decisions end."`
	Paused          bool              `json:"paused,omitempty" default:"false" doc:"If true, the cluster gets no new decisions. Existing ones stay."`
	Kubernetes      *KubernetesSpec   `json:"kubernetes,omitempty" doc:"Access to the Kubernetes API. The server then observes the cluster's state, capacity, region, zones, custom resource definitions and resource types."`
	Health          *HealthSpec       `json:"health,omitempty" doc:"How the server checks whether the cluster is online. If omitted: a cluster with a kubeconfig is watched; one that has sent heartbeats is online while they continue; any other counts as online, unless it has yet to be created."`

	Spot             *SpotSpec         `json:"spot,omitempty" doc:"Splits workloads between the on-demand and spot nodes of the cluster: workloads with a 'distribution', and Deployments and StatefulSets that request it by label. If omitted, the server changes nothing in the cluster. Removing it removes the webhook and leaves the pods as they are."`
	OpenStack        *ClusterOpenStack `json:"openstack,omitempty" doc:"Availability zone of a cloud that the cluster represents. The cluster has the capacity and flavors of the zone."`
	CloudConstraints *CloudConstraints `json:"cloud_constraints,omitempty" doc:"Which clouds the cluster may be created on. It inherits the labels and metrics that the constraints name from the chosen cloud. The cluster is 'pending', and gets no placements, until something shows that it exists: a working kubeconfig or health check, a heartbeat, or capacity."`
	InheritLabels    bool              `json:"inherit_labels,omitempty" default:"false" doc:"If true, the cluster inherits all labels of the chosen cloud. The cloud's value wins over the cluster's own."`
	InheritMetrics   bool              `json:"inherit_metrics,omitempty" default:"false" doc:"If true, the cluster inherits all metrics of the chosen cloud, in addition to its own."`
	Flavors          []ClusterFlavor   `json:"flavors,omitempty" doc:"Machine sizes that the cluster offers, in addition to those of its cloud."`
}

// ClusterOpenStack is the availability zone that a cluster represents.
type ClusterOpenStack struct {
	Cloud            string `json:"cloud" ref:"cloud" doc:"Name of the cloud."`
	Region           string `json:"region" doc:"Region of the cloud."`
	AvailabilityZone string `json:"availability_zone" doc:"Availability zone in the region."`
}

// CloudConstraints restrict the clouds that a cluster may be created on.
type CloudConstraints struct {
	LabelConstraints  []string `json:"label_constraints,omitempty" doc:"Constraints on the cloud's labels, all of which must hold: 'location is DE', 'operator not in (a, b)'."`
	MetricConstraints []string `json:"metric_constraints,omitempty" doc:"Constraints on the cloud's metrics, all of which must hold: 'price < 5'. A metric without a value satisfies none."`
}

// ClusterFlavor is a machine size of a cluster. If its resources are known, the number of machines
// that fit is derived from the available resources.
type ClusterFlavor struct {
	Name   string   `json:"name" doc:"Name of the flavor."`
	VCPUs  int64    `json:"vcpus,omitempty" minimum:"0" doc:"Virtual CPUs of a machine."`
	Memory Quantity `json:"memory,omitempty" doc:"Memory of a machine, as a Kubernetes quantity such as '4Gi'."`
	Count  *int64   `json:"count,omitempty" minimum:"0" doc:"Number of machines that there is room for, used until capacity is reported."`
}

// KubernetesSpec holds the access to a Kubernetes cluster.
type KubernetesSpec struct {
	Kubeconfig Secret `json:"kubeconfig,omitzero" doc:"Self-contained kubeconfig file: it holds tokens and certificates, not names of files or programs." writeOnly:"true" nullable:"true"`
}

// HealthSpec configures how the state of a cluster is determined: by an HTTP(S) probe if URL is
// set, otherwise by watching the cluster if it has a kubeconfig, otherwise by heartbeats that must
// arrive within Interval.
type HealthSpec struct {
	URL              string   `json:"url,omitempty" doc:"Address that the server requests with GET; a response from 200 to 299 is a success. If omitted, the cluster is watched through its kubeconfig, or must send heartbeats if it has none."`
	Interval         Duration `json:"interval,omitempty" default:"10s" shortest:"100ms" doc:"Time between two checks, or within which a heartbeat is expected."`
	FailureThreshold int64    `json:"failure_threshold,omitempty" default:"3" minimum:"1" doc:"Number of consecutive failures after which the cluster is taken out of service."`
	SuccessThreshold int64    `json:"success_threshold,omitempty" default:"2" minimum:"1" doc:"Number of consecutive successes after which it is back in service."`
}

// MetricRef refers to a metric that rates a cluster.
type MetricRef struct {
	Name      string   `json:"name" ref:"metric,sibling,optional" doc:"Name of the metric."`
	Namespace string   `json:"namespace,omitempty" doc:"Namespace of the metric. If omitted, the metric is global."`
	Weight    *float64 `json:"weight,omitempty" default:"1" minimum:"0" doc:"Weight of the metric in the score."`
}

// Key returns the key of the metric.
func (r MetricRef) Key() Key {
	return Key{Kind: KindMetric, Namespace: r.Namespace, Name: r.Name}
}

// ClusterState is the state of a cluster. Only an "online" cluster accepts new workloads.
type ClusterState string

// The states of a cluster.
const (
	// StateOnline: the cluster accepts workloads.
	StateOnline ClusterState = "online"
	// StatePending: the cluster has not been probed yet, has not sent its first heartbeat, or does
	// not exist yet.
	StatePending ClusterState = "pending"
	// StateConnecting: the cluster responds again, but has not yet reached the success threshold.
	StateConnecting ClusterState = "connecting"
	// StateOffline: the cluster cannot be reached, or its heartbeats have stopped.
	StateOffline ClusterState = "offline"
	// StateUnhealthy: the cluster responds and reports that it is unhealthy.
	StateUnhealthy ClusterState = "unhealthy"
	// StateNotReady: the cluster responds and reports that its nodes are not ready.
	StateNotReady ClusterState = "notready"
)

// ClusterStatus is what the server knows about a cluster.
type ClusterStatus struct {
	ObservedGeneration int64        `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	State              ClusterState `json:"state,omitempty" doc:"'online', 'pending', 'connecting', 'offline', 'unhealthy' or 'notready'. Only online clusters get new workloads."`
	Conditions         []Condition  `json:"conditions,omitempty" doc:"Conditions that the server observed."`
	// Capacity, Allocatable and Allocated were last reported by a heartbeat. Each resource
	// overrides the declared one of the same name.
	Capacity    Quantities `json:"capacity,omitempty" doc:"Total amount of each resource, as last reported or observed."`
	Allocatable Quantities `json:"allocatable,omitempty" doc:"Amount of each resource that workloads may use, as last reported or observed."`
	Allocated   Quantities `json:"allocated,omitempty" doc:"Amount of each resource in use, as last reported or observed."`
	Available   Quantities `json:"available,omitempty" doc:"Amount of each resource that is free: 'allocatable' less 'allocated' and less the reservations for decisions made since the last capacity report."`
	// GoneResources and ObservedZone distinguish resources that were observed before, which now
	// count as 0, from resources that were never observed, which are unknown.
	GoneResources []string              `json:"gone_resources,omitempty" doc:"Resources that used to be reported. The cluster has 0 of each now."`
	ObservedZone  *ClusterOpenStack     `json:"observed_zone,omitempty" doc:"Availability zone that the cluster represents, once its capacity has been observed. If the zone disappears, the cluster has no capacity."`
	Metrics       []ClusterMetricStatus `json:"metrics,omitempty" doc:"Current values of the cluster's metrics."`
	Taints        []ClusterTaint        `json:"taints,omitempty" doc:"Taints in force, both declared and automatic."`
	// Cloud and CloudScore hold the decision for a cluster without a kubeconfig.
	Cloud      string   `json:"cloud,omitempty" ref:"cloud,optional" doc:"Cloud that was chosen to create the cluster on."`
	CloudScore *float64 `json:"cloud_score,omitempty" doc:"Score of the cloud when it was chosen."`
	// Values observed in the cluster are used in addition to the declared ones, except that a
	// declared region or zone takes precedence.
	Region            string            `json:"region,omitempty" doc:"Region of the cluster's nodes, according to their labels."`
	Zones             []string          `json:"zones,omitempty" doc:"Zones of the cluster's nodes, according to their labels."`
	CustomResources   []string          `json:"custom_resources,omitempty" doc:"Custom resource definitions that are installed."`
	APIResources      []string          `json:"api_resources,omitempty" doc:"Types of resources that the cluster serves."`
	KubernetesVersion string            `json:"kubernetes_version,omitempty" doc:"Version of the cluster's API server."`
	Nodes             *ClusterNodes     `json:"nodes,omitempty" doc:"Number of nodes, and how many of them are healthy."`
	Labels            map[string]string `json:"labels,omitempty" doc:"The cluster's own labels and those that it inherits. Absent if it inherits none."`
	Spot              *SpotStatus       `json:"spot,omitempty" doc:"Split between on-demand and spot nodes in the cluster."`
	Flavors           map[string]int64  `json:"flavors,omitempty" doc:"Number of machines of each flavor that there is room for."`
	// LastHeartbeatAt is when an agent of the cluster last reported.
	LastHeartbeatAt *time.Time `json:"last_heartbeat_at,omitempty" doc:"When an agent in the cluster last sent a heartbeat."`
	// CapacityReportedAt is when `allocated` was last declared or reported.
	CapacityReportedAt *time.Time `json:"capacity_reported_at,omitempty" doc:"When 'allocated' was last declared or reported."`
}

// ClusterNodes counts the nodes of a cluster.
type ClusterNodes struct {
	Total    int64 `json:"total" doc:"Number of nodes."`
	Ready    int64 `json:"ready" doc:"Number of nodes that are ready and not under pressure."`
	Pressure int64 `json:"pressure,omitempty" doc:"Number of nodes that report memory, disk or process ID pressure."`
}

// ClusterMetricStatus is the current value of one of the cluster's metrics.
type ClusterMetricStatus struct {
	Name       string     `json:"name" doc:"Name of the metric."`
	Namespace  string     `json:"namespace,omitempty" doc:"Namespace of the metric. Absent for a global one."`
	Weight     float64    `json:"weight" doc:"Weight of the metric in the score."`
	Value      *float64   `json:"value,omitempty" doc:"Raw value."`
	Normalized *float64   `json:"normalized,omitempty" doc:"Value mapped to the range 0 to 1, where 1 is best."`
	ObservedAt *time.Time `json:"observed_at,omitempty" doc:"When the value was observed."`
	Reason     string     `json:"reason,omitempty" doc:"Why the metric is not available. 'Withheld' means that it belongs to a namespace that the reader may not read."`
}

// Heartbeat is a report from an agent in a cluster. All fields are optional; an empty heartbeat
// reports that the cluster is alive.
type Heartbeat struct {
	Capacity    Quantities `json:"capacity,omitempty" doc:"Total amount of each resource."`
	Allocatable Quantities `json:"allocatable,omitempty" doc:"Amount of each resource that workloads may use."`
	Allocated   Quantities `json:"allocated,omitempty" doc:"Amount of each resource in use."`
}

// Validate returns all validation errors of the heartbeat.
func (h *Heartbeat) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkFields("", h)
	return errs.inOrder(h)
}

// HasKubeconfig reports whether the cluster has a kubeconfig, so that it can be observed.
func (c *Cluster) HasKubeconfig() bool {
	return c.Spec.Kubernetes != nil && !c.Spec.Kubernetes.Kubeconfig.IsZero()
}

// HasAmounts reports whether any amount of any resource is declared or reported.
func (s *ClusterSpec) HasAmounts(known *ClusterStatus) bool {
	return len(s.Capacity)+len(s.Allocatable)+len(s.Allocated) > 0 ||
		len(known.Capacity)+len(known.Allocatable)+len(known.Allocated) > 0
}

// Region returns the region of the cluster: the declared one, else the one observed in it, else that
// of the availability zone that it represents, whether or not there is such a cloud.
func (c *Cluster) Region() string {
	region := cmp.Or(c.Spec.Region, c.Status.Region)
	if region == "" && c.Spec.OpenStack != nil {
		region = c.Spec.OpenStack.Region
	}
	return region
}

// Zones returns the zones that the cluster spans, found in the same order as its region.
func (c *Cluster) Zones() []string {
	switch {
	case len(c.Spec.Zones) > 0:
		return c.Spec.Zones
	case len(c.Status.Zones) > 0:
		return c.Status.Zones
	case c.Spec.OpenStack != nil:
		return []string{c.Spec.OpenStack.AvailabilityZone}
	}
	return nil
}

// Awaited reports whether the cluster does not exist yet: it has cloud constraints, and nothing
// shows that it exists, such as a kubeconfig, a health check, a heartbeat, amounts or an
// availability zone that it represents.
func (s *ClusterSpec) Awaited(known *ClusterStatus) bool {
	access := s.Kubernetes != nil && !s.Kubernetes.Kubeconfig.IsZero()
	return s.CloudConstraints != nil && s.OpenStack == nil && s.Health == nil && !access &&
		known.LastHeartbeatAt == nil && !s.HasAmounts(known)
}

// TakeDecided takes over what is decided of a cluster, and keeps what was observed of it.
// Each of the two has one writer, and the observed generation is that of whichever has
// answered a later one.
func (s *ClusterStatus) TakeDecided(from *ClusterStatus) {
	s.Cloud, s.CloudScore, s.ObservedZone = from.Cloud, from.CloudScore, from.ObservedZone
	s.ObservedGeneration = max(s.ObservedGeneration, from.ObservedGeneration)
	RemoveCondition(&s.Conditions, ConditionBound)
	if bound := FindCondition(from.Conditions, ConditionBound); bound != nil {
		s.Conditions = append(slices.Clip(s.Conditions), *bound)
	}
}

// TakeObserved takes over what was observed of a cluster, and keeps what is decided of it.
func (s *ClusterStatus) TakeObserved(from *ClusterStatus) {
	decided := *s
	*s = *from
	s.TakeDecided(&decided)
}

// ObjectKind implements Object.
func (c *Cluster) ObjectKind() Kind { return KindCluster }

// Meta implements Object.
func (c *Cluster) Meta() *Metadata { return &c.Metadata }

// SpecPart implements Object.
func (c *Cluster) SpecPart() any { return &c.Spec }

// StatusPart implements Object.
func (c *Cluster) StatusPart() any { return &c.Status }

// Copy implements Object.
func (c *Cluster) Copy() Object { d := *c; return &d }

// Secrets implements Object.
func (c *Cluster) Secrets() map[string]Secret {
	if c.HasKubeconfig() {
		return map[string]Secret{"spec.kubernetes.kubeconfig": c.Spec.Kubernetes.Kubeconfig}
	}
	return nil
}

// SetSecret implements Object.
func (c *Cluster) SetSecret(field string, secret Secret) {
	if field == "spec.kubernetes.kubeconfig" {
		c.Spec.Kubernetes = &KubernetesSpec{Kubeconfig: secret}
	}
}

// receiver implements secretReceiver. The address is in the kubeconfig itself.
func (c *Cluster) receiver(string) receiver { return receiver{} }

// Thresholds of a health check, also used if a cluster declares none.
const (
	DefaultFailureThreshold int64 = 3
	DefaultSuccessThreshold int64 = 2
)

// SetDefaults implements Object. Clusters are global, so a namespace in the metadata is taken as
// the owner.
func (c *Cluster) SetDefaults() {
	c.Kind = KindCluster
	setOwner(&c.Metadata, &c.Spec.Namespace)
	c.Metadata.setDefaults(Global)
	setDefaults(&c.Spec)
	c.Status.State = ClusterState(strings.ToLower(string(c.Status.State)))
}

var customResourceShape = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)

// Validate implements Object.
func (c *Cluster) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(c, Global)
	s := &c.Spec
	if s.Namespace != "" {
		errs.check("spec.namespace", checkName(s.Namespace))
	}
	errs.check("spec.description", checkFreeText(s.Description))
	s.validateNamespaces(&errs)
	checkUnique(&errs, "spec.zones", s.Zones)
	for i, zone := range s.Zones {
		if zone == "" {
			errs.Add(index("spec.zones", i), "must not be empty")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Claims)) {
		errs.check("spec.claims["+quote(name)+"]", checkLabelKey(name))
	}
	validateTaints(&errs, "spec.taints", s.Taints)
	validateCustomResources(&errs, "spec.custom_resources", s.CustomResources)
	validateAPIResources(&errs, "spec.api_resources", s.APIResources)
	validateMetricRefs(&errs, s.Metrics)
	if s.Health != nil && s.Health.URL != "" {
		errs.check("spec.health.url", checkURL(s.Health.URL))
	}
	if c.HasKubeconfig() && !s.Kubernetes.Kubeconfig.Withheld() {
		errs.check("spec.kubernetes.kubeconfig", checkKubeconfig(s.Kubernetes.Kubeconfig.Reveal()))
	}
	if o := s.OpenStack; o != nil {
		errs.check("spec.openstack.cloud", checkName(o.Cloud))
		errs.check("spec.openstack.region", checkText(o.Region))
		errs.check("spec.openstack.availability_zone", checkText(o.AvailabilityZone))
	}
	if k := s.CloudConstraints; k != nil {
		validateConstraints(&errs, "spec.cloud_constraints", k.LabelConstraints, k.MetricConstraints)
	}
	validateFlavors(&errs, s.Flavors)
	if s.Spot != nil {
		errs.check("spec.spot.node_type_key", checkKubernetesKey(s.Spot.NodeTypeKey))
	}
	return errs.inOrder(c)
}

// validateNamespaces checks the owners.
func (s *ClusterSpec) validateNamespaces(errs *FieldErrors) {
	const at = "spec.namespaces"
	if s.Namespace != "" && len(s.Namespaces) > 0 {
		errs.Add(at, "must be absent because spec.namespace is set: list all owners in one of the two")
	}
	checkUnique(errs, at, s.Namespaces)
	for i, namespace := range s.Namespaces {
		errs.check(index(at, i), checkName(namespace))
	}
}

// Owners returns the namespaces that own the cluster. If there are none, everybody may use it.
func (c *Cluster) Owners() []string {
	if c.Spec.Namespace != "" {
		return []string{c.Spec.Namespace}
	}
	return c.Spec.Namespaces
}

// SoleOwner returns the only owner of the cluster. It is "" if the cluster has none, or several, to
// whom what belongs to one of them must not be disclosed.
func (c *Cluster) SoleOwner() string {
	if owners := c.Owners(); len(owners) == 1 {
		return owners[0]
	}
	return ""
}

// VisibleTo reports whether placements in a namespace can see the cluster.
func (c *Cluster) VisibleTo(namespace string) bool {
	if c.Spec.Namespace != "" {
		return c.Spec.Namespace == namespace
	}
	return len(c.Spec.Namespaces) == 0 || slices.Contains(c.Spec.Namespaces, namespace)
}

// SameOwners reports whether two clusters have the same owners.
func SameOwners(a, b *Cluster) bool {
	return a.Spec.Namespace == b.Spec.Namespace && slices.Equal(a.Spec.Namespaces, b.Spec.Namespaces)
}

// setOwner moves a namespace in the metadata of a global object to its owner field.
func setOwner(m *Metadata, namespace *string) {
	if *namespace == "" {
		*namespace, m.Namespace = m.Namespace, ""
	} else if m.Namespace == *namespace {
		m.Namespace = ""
	}
}

// validateMetricRefs checks spec.metrics.
func validateMetricRefs(errs *FieldErrors, refs []MetricRef) {
	seen := make(map[Key]int, len(refs))
	sum, complete := 0.0, true
	for i, ref := range refs {
		field := index("spec.metrics", i)
		errs.check(field+".name", checkName(ref.Name))
		if ref.Namespace != "" {
			errs.check(field+".namespace", checkName(ref.Namespace))
		}
		if first, ok := seen[ref.Key()]; ok && ref.Name != "" {
			errs.Add(field+".name", "%s is already listed at position %d", ref.Key(), first)
		} else {
			seen[ref.Key()] = i
		}
		switch {
		case ref.Weight == nil:
			complete = false
		case !(*ref.Weight >= 0) || math.IsInf(*ref.Weight, 0):
			complete = false // already reported by the field's own rule
		default:
			sum += *ref.Weight
		}
	}
	if complete && len(refs) > 0 && (sum <= 0 || math.IsInf(sum, 0)) {
		errs.Add("spec.metrics", "the weights must have a positive, finite sum: at least one must be above 0")
	}
}

func validateFlavors(errs *FieldErrors, flavors []ClusterFlavor) {
	names := make([]string, len(flavors))
	for i := range flavors {
		names[i] = flavors[i].Name
		errs.check(index("spec.flavors", i)+".name", checkText(names[i]))
	}
	checkUnique(errs, "spec.flavors", names)
}

// validateConstraints checks lists of label and metric constraints.
func validateConstraints(errs *FieldErrors, field string, labels, metrics []string) {
	for i, text := range labels {
		if _, err := constraint.ParseLabel(text); err != nil {
			errs.Add(index(field+".label_constraints", i), "%s", err)
		}
	}
	for i, text := range metrics {
		if _, err := constraint.ParseMetric(text); err != nil {
			errs.Add(index(field+".metric_constraints", i), "%s", err)
		}
	}
}

func validateCustomResources(errs *FieldErrors, field string, names []string) {
	checkUnique(errs, field, names)
	for i, name := range names {
		if !customResourceShape.MatchString(name) {
			errs.Add(index(field, i), "%q must have the form <plural>.<group>, such as \"crontabs.stable.example.com\"", name)
		}
	}
}

// checkURL accepts absolute HTTP and HTTPS addresses. A user part is rejected because it would end
// up in logs.
func checkURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		what := "is not an address" // the address is not repeated: it may be a misplaced secret
		if text == "" {
			what = `"" is not an address`
		}
		return what + ": write http://host[:port]/path or https://host[:port]/path"
	case u.User != nil:
		return "must not contain a user or password: use headers or bearer_token"
	case !PossiblePort(u):
		return "must have a port from 1 to 65535, or none"
	}
	// Some addresses are blocked whatever the server's settings are, so they can be rejected here.
	if err := addresspolicy.OnLoopback().CheckHost(u.Hostname()); err != nil {
		return err.Error()
	}
	return ""
}

// PossiblePort reports whether an address has no port or a valid one.
func PossiblePort(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}
