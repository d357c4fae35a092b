package api

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
)

// Cloud is an OpenStack cloud that clusters are created on. Its status holds the resources of each
// region and availability zone.
type Cloud struct {
	Kind     Kind        `json:"kind" enum:"cloud"`
	Metadata Metadata    `json:"metadata"`
	Spec     CloudSpec   `json:"spec"`
	Status   CloudStatus `json:"status,omitzero"`
}

// CloudSpec is what the owner of a cloud declares.
type CloudSpec struct {
	Namespace string         `json:"namespace,omitempty" doc:"Namespace that owns the cloud: only its clusters are created on the cloud, and they prefer it. If omitted, clusters of all namespaces are."`
	Metrics   []MetricRef    `json:"metrics,omitempty" doc:"Metrics that rate the cloud. Only a cloud with a 'namespace' may list metrics of namespaces."`
	OpenStack *OpenStackSpec `json:"openstack,omitempty" doc:"Access to the OpenStack API. With credentials, the server collects the capacity of each availability zone."`
}

// CloudStatus is what the server knows about a cloud.
type CloudStatus struct {
	ObservedGeneration int64                 `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	Conditions         []Condition           `json:"conditions,omitempty" doc:"Conditions that the server observed."`
	Regions            []CloudRegion         `json:"regions,omitempty" doc:"Regions, sorted by name."`
	Metrics            []ClusterMetricStatus `json:"metrics,omitempty" doc:"Current values of the cloud's metrics."`
	// Collector is the external collector that pushed last, if any.
	Collector *CollectorStatus `json:"collector,omitempty" doc:"Collector that pushes the data, if one runs outside the server."`
}

// CollectorStatus is the state of an external collector.
type CollectorStatus struct {
	Name     string `json:"name" doc:"Name of the collector. A new one is chosen at every start."`
	Sequence int64  `json:"sequence" doc:"Number of the last push that was accepted."`
}

// CloudRegion is one region of a cloud.
type CloudRegion struct {
	Name         string            `json:"name" doc:"Name of the region."`
	ObservedAt   *time.Time        `json:"observed_at,omitempty" doc:"When something in the region last changed."`
	Failures     int64             `json:"failures,omitempty" doc:"Number of consecutive failed collections, counted up to 5. At 5, the region counts as lost."`
	FailingSince *time.Time        `json:"failing_since,omitempty" doc:"When collections began to fail."`
	Reason       string            `json:"reason,omitempty" doc:"'Unauthorized' or 'RegionFailed' if the last collection failed; 'Pending' before the first one."`
	Message      string            `json:"message,omitempty" doc:"Why the last collection failed."`
	Zones        []CloudZone       `json:"zones,omitempty" doc:"Availability zones, sorted by name."`
	Flavors      []CloudFlavor     `json:"flavors,omitempty" doc:"Flavors, sorted by name."`
	VolumeTypes  []CloudVolumeType `json:"volume_types,omitempty" doc:"Volume types, sorted by name."`
}

// Unreachable reports whether the region counts as lost because too many consecutive collections
// have failed.
func (r *CloudRegion) Unreachable() bool { return r.Failures >= MaxUnreachableFailures }

// Pending reports whether the region is known but has not been collected yet.
func (r *CloudRegion) Pending() bool { return r.Reason == ReasonPending }

// Observed reports whether the zones of the region are known: it was collected at least once, even
// if collection currently fails.
func (r *CloudRegion) Observed() bool {
	return r.ObservedAt != nil || len(r.Zones) > 0 || r.Reason == "" && r.Failures == 0
}

// CloudZone holds the resources of an availability zone. Resources are named "cpu", "memory",
// "storage/<volume type>" and "floating_ips". Storage and floating IPs belong to the whole region
// and are repeated in each of its zones.
type CloudZone struct {
	Name        string     `json:"name" doc:"Name of the availability zone."`
	Hosts       int64      `json:"hosts" minimum:"0" doc:"Number of hosts that are up and enabled."`
	Capacity    Quantities `json:"capacity,omitempty" doc:"Total amount of each resource on the hosts."`
	Allocatable Quantities `json:"allocatable,omitempty" doc:"Amount of each resource that can be used: the total times the allocation ratio, less what is reserved."`
	Allocated   Quantities `json:"allocated,omitempty" doc:"Amount of each resource in use."`
	Available   Quantities `json:"available,omitempty" doc:"Amount of each resource that is free: 'allocatable' less 'allocated', never negative."`
	ObservedAt  *time.Time `json:"observed_at,omitempty" doc:"When the amounts last changed."`
	// GoneResources were observed before and are now gone. A resource that was never observed is
	// unknown instead.
	GoneResources []string `json:"gone_resources,omitempty" doc:"Resources that the zone used to have. It has 0 of each now."`
}

// The names of the resources of a zone.
const (
	ResourceCPU         = "cpu"
	ResourceMemory      = "memory"
	ResourceFloatingIPs = "floating_ips"
	// ResourceStoragePrefix precedes the name of a volume type.
	ResourceStoragePrefix = "storage/"
)

// CloudFlavor is a machine size.
type CloudFlavor struct {
	ID        string `json:"id" doc:"ID of the flavor."`
	Name      string `json:"name" doc:"Name of the flavor."`
	VCPUs     int64  `json:"vcpus" minimum:"0" doc:"Virtual CPUs of a machine."`
	MemoryMiB int64  `json:"memory_mib" minimum:"0" doc:"Memory of a machine in MiB."`
	DiskGiB   int64  `json:"disk_gib,omitempty" minimum:"0" doc:"Root disk of a machine in GiB."`
	Public    bool   `json:"public,omitempty" doc:"Whether every project may use the flavor."`
}

// CloudVolumeType is a volume type.
type CloudVolumeType struct {
	ID      string `json:"id" doc:"ID of the volume type."`
	Name    string `json:"name" doc:"Name of the volume type."`
	Backend string `json:"backend,omitempty" doc:"Name of the storage backend ('volume_backend_name' in the extra specs)."`
}

// Observed reports whether the regions of the cloud are known.
func (s *CloudStatus) Observed() bool {
	if len(s.Regions) > 0 || s.Collector != nil {
		return true
	}
	collected := FindCondition(s.Conditions, ConditionCollected)
	return collected != nil && collected.Status == ConditionTrue
}

// Region returns the region with the given name, or nil.
func (s *CloudStatus) Region(name string) *CloudRegion {
	i := slices.IndexFunc(s.Regions, func(r CloudRegion) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Regions[i]
}

// Zone returns the zone with the given name, or nil.
func (r *CloudRegion) Zone(name string) *CloudZone {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Zones, func(z CloudZone) bool { return z.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Zones[i]
}

// CloudReport is what a collector pushes about a cloud. Each collector numbers its reports from 1.
// A report that does not follow the previous one is rejected; the collector then sends a full
// report, which may have any number.
type CloudReport struct {
	Collector string `json:"collector" doc:"Name of the collector. A new one is chosen at every start."`
	Sequence  int64  `json:"sequence" minimum:"1" doc:"Number of the report: one more than the previous report's."`
	Full      bool   `json:"full,omitempty" doc:"The report is complete: regions and zones that it does not list are gone."`
	More      bool   `json:"more,omitempty" doc:"The report continues in the one with the next number. It takes effect when its last part arrives."`
	// Error is set if not even the regions could be listed. It counts as a failure of every known
	// region. Such a report is never full and may have any number.
	Error   string              `json:"error,omitempty" maxLength:"1024" doc:"Why OpenStack could not be queried at all."`
	Reason  string              `json:"reason,omitempty" doc:"Reason for the condition that an error sets."`
	Regions []CloudRegionReport `json:"regions,omitempty" doc:"Regions in which something changed."`
}

// CloudRegionReport holds the changes in one region.
type CloudRegionReport struct {
	Name  string `json:"name" doc:"Name of the region."`
	Error string `json:"error,omitempty" maxLength:"1024" doc:"Why the collection failed. Nothing else is given then."`
	// Reason is the reason of the condition that the error sets.
	Reason       string             `json:"reason,omitempty" doc:"Reason for the condition that the error sets."`
	Failures     int64              `json:"failures,omitempty" minimum:"0" doc:"With an error: number of consecutive failed collections. If omitted, one more than before."`
	Full         bool               `json:"full,omitempty" doc:"The report lists all zones of the region: zones that it does not list are gone."`
	Zones        []CloudZone        `json:"zones,omitempty" doc:"Zones whose amounts changed."`
	RemovedZones []string           `json:"removed_zones,omitempty" doc:"Zones that are gone."`
	Flavors      *[]CloudFlavor     `json:"flavors,omitempty" doc:"All flavors, if any of them changed."`
	VolumeTypes  *[]CloudVolumeType `json:"volume_types,omitempty" doc:"All volume types, if any of them changed."`
}

// Validate returns all validation errors of the report.
func (r *CloudReport) Validate() FieldErrors {
	var errs FieldErrors
	errs.check("collector", checkText(r.Collector))
	errs.checkFields("", r)
	if r.Error != "" && (r.Full || r.More || len(r.Regions) > 0) {
		errs.Add("error", "must be absent in a report with full, more or regions")
	}
	names := make([]string, len(r.Regions))
	for i := range r.Regions {
		region := &r.Regions[i]
		at := index("regions", i)
		if region.Error != "" && (region.Full || len(region.Zones) > 0 || len(region.RemovedZones) > 0 || region.Flavors != nil || region.VolumeTypes != nil) {
			errs.Add(at+".error", "must be absent in a region with full, zones, removed_zones, flavors or volume_types")
		}
		names[i] = region.Name
		errs.check(at+".name", checkText(region.Name))
		zones := make([]string, len(region.Zones))
		for j := range region.Zones {
			zones[j] = region.Zones[j].Name
			errs.check(index(at+".zones", j)+".name", checkText(zones[j]))
			region.Zones[j].checkTotals(&errs, index(at+".zones", j))
		}
		checkUnique(&errs, at+".zones", zones)
		if region.Flavors != nil {
			for j, flavor := range *region.Flavors {
				errs.check(index(at+".flavors", j)+".name", checkText(flavor.Name))
				errs.check(index(at+".flavors", j)+".memory_mib", checkMemory(flavor.MemoryMiB))
			}
		}
	}
	checkUnique(&errs, "regions", names)
	return errs.inOrder(r)
}

// ImpliedTotals yields the allocatable amounts that follow from a report that has only available ones:
// available plus allocated, by resource, in order.
func (z *CloudZone) ImpliedTotals() iter.Seq2[string, amount.Milli] {
	return func(yield func(resource string, total amount.Milli) bool) {
		for _, name := range slices.Sorted(maps.Keys(z.Available)) {
			if _, ok := z.Allocatable[name]; ok {
				continue
			}
			available, err := z.Available[name].Milli()
			allocated, _ := cmp.Or(z.Allocated[name], "0").Milli()
			if err == nil && !yield(name, available.Plus(allocated)) {
				return
			}
		}
	}
}

// checkTotals checks that the allocatable amounts that follow from the available ones are quantities.
func (z *CloudZone) checkTotals(errs *FieldErrors, at string) {
	for name, total := range z.ImpliedTotals() {
		if amount.Largest.Less(total) {
			errs.Add(at+".available["+quote(name)+"]", "%q and what is allocated, %q, are out of range together: a quantity is at most %d, which is just below 8Ei",
				string(z.Available[name]), string(z.Allocated[name]), int64(math.MaxInt64))
		}
	}
}

// checkMemory describes what is wrong with a number of MiB, or returns "".
func checkMemory(mebibytes int64) string {
	if mebibytes < 0 {
		return "" // the bounds of the field say so
	}
	return Quantity(strconv.FormatInt(mebibytes, 10) + "Mi").check()
}

// ObjectKind implements Object.
func (c *Cloud) ObjectKind() Kind { return KindCloud }

// Meta implements Object.
func (c *Cloud) Meta() *Metadata { return &c.Metadata }

// SpecPart implements Object.
func (c *Cloud) SpecPart() any { return &c.Spec }

// StatusPart implements Object.
func (c *Cloud) StatusPart() any { return &c.Status }

// Copy implements Object.
func (c *Cloud) Copy() Object { d := *c; return &d }

// Secrets implements Object.
func (c *Cloud) Secrets() map[string]Secret {
	out := map[string]Secret{}
	c.Spec.OpenStack.secrets(out)
	return out
}

// SetSecret implements Object.
func (c *Cloud) SetSecret(field string, secret Secret) {
	c.Spec.OpenStack = c.Spec.OpenStack.withSecret(field, secret)
}

// receiver implements secretReceiver.
func (c *Cloud) receiver(field string) receiver { return c.Spec.OpenStack.receiver(field) }

// SetDefaults implements Object. As for clusters, a namespace in the metadata is taken as the
// owner.
func (c *Cloud) SetDefaults() {
	c.Kind = KindCloud
	setOwner(&c.Metadata, &c.Spec.Namespace)
	c.Metadata.setDefaults(Global)
	setDefaults(&c.Spec)
}

// Owners returns the namespaces that own the cloud. If there are none, everybody may use it.
func (c *Cloud) Owners() []string {
	if c.Spec.Namespace == "" {
		return nil
	}
	return []string{c.Spec.Namespace}
}

// Serves reports whether a cluster may be created on the cloud. Every owner of the cluster must be
// able to see the cloud.
func (c *Cloud) Serves(cluster *Cluster) bool {
	return c.Spec.Namespace == "" || !slices.ContainsFunc(cluster.Owners(), func(owner string) bool { return owner != c.Spec.Namespace })
}

// Validate implements Object.
func (c *Cloud) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(c, Global)
	if c.Spec.Namespace != "" {
		errs.check("spec.namespace", checkName(c.Spec.Namespace))
	}
	validateMetricRefs(&errs, c.Spec.Metrics)
	for i, ref := range c.Spec.Metrics {
		// A global object must not depend on the objects of one namespace.
		if c.Spec.Namespace == "" && ref.Namespace != "" {
			errs.Add(index("spec.metrics", i)+".namespace", "must be absent: a cloud without a namespace is rated by global metrics only")
		}
	}
	c.Spec.OpenStack.validate(&errs)
	return errs.inOrder(c)
}
