package api

import (
	"slices"
	"time"
)

// Cloud is an OpenStack that clusters are created on. Its status holds what it
// has, per region and availability zone.
type Cloud struct {
	Kind     Kind        `json:"kind" enum:"cloud"`
	Metadata Metadata    `json:"metadata"`
	Spec     CloudSpec   `json:"spec"`
	Status   CloudStatus `json:"status,omitzero"`
}

// CloudSpec is what the owner of a cloud declares.
type CloudSpec struct {
	Namespace string         `json:"namespace,omitempty" doc:"Owner: only clusters of this namespace are created on the cloud, and prefer it. Absent = all."`
	Metrics   []MetricRef    `json:"metrics,omitempty" doc:"Metrics that rate the cloud, each with its weight."`
	OpenStack *OpenStackSpec `json:"openstack,omitempty" doc:"Access to the OpenStack, from which the figures of its zones are collected."`
}

// CloudStatus is what the server knows about a cloud.
type CloudStatus struct {
	ObservedGeneration int64                 `json:"observed_generation,omitempty"`
	Conditions         []Condition           `json:"conditions,omitempty"`
	Regions            []CloudRegion         `json:"regions,omitempty" doc:"By name."`
	Metrics            []ClusterMetricStatus `json:"metrics,omitempty" doc:"The present values of the cloud's metrics."`
	// Collector is who pushed last, where a collector runs apart.
	Collector *CollectorStatus `json:"collector,omitempty"`
}

// CollectorStatus is how far the pushes of a collector have come.
type CollectorStatus struct {
	Name     string `json:"name" doc:"Differs for every start of a collector."`
	Sequence int64  `json:"sequence" doc:"Number of the last push that was taken in."`
}

// CloudRegion is one region of a cloud.
type CloudRegion struct {
	Name         string            `json:"name"`
	ObservedAt   *time.Time        `json:"observed_at,omitempty" doc:"When something in the region was last found to be different."`
	Failures     int64             `json:"failures,omitempty" doc:"Collections in a row that failed, counted up to 5: from then on the region counts as lost."`
	FailingSince *time.Time        `json:"failing_since,omitempty"`
	Reason       string            `json:"reason,omitempty" doc:"Unauthorized or RegionFailed, where the last collection failed; Pending, where there was none yet."`
	Message      string            `json:"message,omitempty" doc:"Why the last collection failed."`
	Zones        []CloudZone       `json:"zones,omitempty" doc:"Availability zones by name."`
	Flavors      []CloudFlavor     `json:"flavors,omitempty" doc:"By name."`
	VolumeTypes  []CloudVolumeType `json:"volume_types,omitempty" doc:"By name."`
}

// Unreachable reports whether so many collections in a row have failed that the
// region counts as lost.
func (r *CloudRegion) Unreachable() bool { return r.Failures >= MaxUnreachableFailures }

// Pending reports whether the region is known, and was not collected yet.
func (r *CloudRegion) Pending() bool { return r.Reason == ReasonPending }

// Observed reports whether it is known which zones the region has: it was
// collected once, also where that fails at present.
func (r *CloudRegion) Observed() bool {
	return r.ObservedAt != nil || len(r.Zones) > 0 || r.Reason == "" && r.Failures == 0
}

// CloudZone is what an availability zone has. The names of the resources are
// "cpu", "memory", "storage/<volume type>" and "floating_ips"; those that are of
// the whole region, as storage and floating IPs are, stand in each of its zones.
type CloudZone struct {
	Name        string     `json:"name"`
	Hosts       int64      `json:"hosts" doc:"Hosts that are up and enabled."`
	Capacity    Quantities `json:"capacity,omitempty" doc:"Total amount by resource, as the hosts have it."`
	Allocatable Quantities `json:"allocatable,omitempty" doc:"The total with the allocation ratios, less what is reserved."`
	Allocated   Quantities `json:"allocated,omitempty" doc:"Amount in use."`
	Available   Quantities `json:"available,omitempty" doc:"allocatable - allocated, never negative."`
	ObservedAt  *time.Time `json:"observed_at,omitempty" doc:"When the figures were last found to be different."`
	// GoneResources are told apart from those that never were observed.
	GoneResources []string `json:"gone_resources,omitempty" doc:"Resources that the zone had before and has no more: there is 0 of them."`
}

// The names of the resources of a zone.
const (
	ResourceCPU         = "cpu"
	ResourceMemory      = "memory"
	ResourceFloatingIPs = "floating_ips"
	// ResourceStoragePrefix stands before the name of a volume type.
	ResourceStoragePrefix = "storage/"
)

// CloudFlavor is a size of machines.
type CloudFlavor struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	VCPUs     int64  `json:"vcpus"`
	MemoryMiB int64  `json:"memory_mib"`
	DiskGiB   int64  `json:"disk_gib,omitempty"`
	Public    bool   `json:"public,omitempty"`
}

// CloudVolumeType is a type of volumes.
type CloudVolumeType struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Backend string `json:"backend,omitempty" doc:"volume_backend_name of its extra specs."`
}

// Observed reports whether it is known which regions the cloud has.
func (s *CloudStatus) Observed() bool {
	if len(s.Regions) > 0 || s.Collector != nil {
		return true
	}
	collected := FindCondition(s.Conditions, ConditionCollected)
	return collected != nil && collected.Status == ConditionTrue
}

// Region is the region of a name, nil where there is none.
func (s *CloudStatus) Region(name string) *CloudRegion {
	i := slices.IndexFunc(s.Regions, func(r CloudRegion) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Regions[i]
}

// Zone is the zone of a name, nil where there is none.
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

// CloudReport is what a collector pushes about a cloud. The reports of one
// collector are numbered from 1; one that does not follow on the last is refused,
// and the collector then sends a full one, which any number may have.
type CloudReport struct {
	Collector string `json:"collector" doc:"Name of the collector; differs for every start."`
	Sequence  int64  `json:"sequence" doc:"Number of the report, one more than that of the last."`
	Full      bool   `json:"full,omitempty" doc:"The report holds all there is: regions and zones that it lacks are gone."`
	More      bool   `json:"more,omitempty" doc:"The report goes on in the one with the next number; nothing of it counts before its last part is here."`
	// Error says that not even the regions could be asked for; it counts for each
	// that is known. Such a report is never full, and may have any number.
	Error   string              `json:"error,omitempty" doc:"Why the OpenStack could not be asked at all."`
	Reason  string              `json:"reason,omitempty" doc:"Reason of the condition that follows from an error."`
	Regions []CloudRegionReport `json:"regions,omitempty" doc:"Regions in which something is different."`
}

// CloudRegionReport is what is different in one region.
type CloudRegionReport struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty" doc:"Why the collection failed; nothing else is given then."`
	// Reason is that of the condition that follows from an error.
	Reason       string             `json:"reason,omitempty"`
	Failures     int64              `json:"failures,omitempty" doc:"With an error: how many collections in a row failed. Absent = one more than before."`
	Full         bool               `json:"full,omitempty" doc:"The report holds all zones of the region: those that it lacks are gone."`
	Zones        []CloudZone        `json:"zones,omitempty" doc:"Zones whose figures are different."`
	RemovedZones []string           `json:"removed_zones,omitempty"`
	Flavors      *[]CloudFlavor     `json:"flavors,omitempty" doc:"All flavors, where they are different."`
	VolumeTypes  *[]CloudVolumeType `json:"volume_types,omitempty" doc:"All volume types, where they are different."`
}

// Validate returns every rule the report breaks.
func (r *CloudReport) Validate() FieldErrors {
	var errs FieldErrors
	errs.check("collector", checkText(r.Collector))
	if r.Sequence < 1 {
		errs.Add("sequence", "%d must be at least 1", r.Sequence)
	}
	checkLength(&errs, "error", r.Error)
	if r.Error != "" && (r.Full || r.More || len(r.Regions) > 0) {
		errs.Add("error", "must be absent in a report that is full, goes on or is about regions")
	}
	names := make([]string, len(r.Regions))
	for i := range r.Regions {
		region := &r.Regions[i]
		at := index("regions", i)
		checkLength(&errs, at+".error", region.Error)
		if region.Error != "" && (region.Full || len(region.Zones) > 0 || len(region.RemovedZones) > 0 || region.Flavors != nil || region.VolumeTypes != nil) {
			errs.Add(at+".error", "must be absent in a report with figures of the region")
		}
		names[i] = region.Name
		errs.check(at+".name", checkText(region.Name))
		if region.Failures < 0 {
			errs.Add(at+".failures", "%d must not be negative", region.Failures)
		}
		zones := make([]string, len(region.Zones))
		for j := range region.Zones {
			zone := &region.Zones[j]
			under := index(at+".zones", j)
			zones[j] = zone.Name
			errs.check(under+".name", checkText(zone.Name))
			if zone.Hosts < 0 {
				errs.Add(under+".hosts", "%d must not be negative", zone.Hosts)
			}
			validateQuantities(&errs, under+".capacity", zone.Capacity)
			validateQuantities(&errs, under+".allocatable", zone.Allocatable)
			validateQuantities(&errs, under+".allocated", zone.Allocated)
			validateQuantities(&errs, under+".available", zone.Available)
		}
		checkUnique(&errs, at+".zones", zones)
		region.validateFlavors(&errs, at+".flavors")
	}
	checkUnique(&errs, "regions", names)
	return errs
}

// checkLength bounds what a report may say, as it is stored and shown.
func checkLength(errs *FieldErrors, field, text string) {
	if len(text) > maxReportMessage {
		errs.Add(field, "must have at most %d characters, has %d", maxReportMessage, len(text))
	}
}

func (r *CloudRegionReport) validateFlavors(errs *FieldErrors, field string) {
	if r.Flavors == nil {
		return
	}
	for i, f := range *r.Flavors {
		at := index(field, i)
		errs.check(at+".name", checkText(f.Name))
		for _, size := range []struct {
			name   string
			amount int64
		}{{"vcpus", f.VCPUs}, {"memory_mib", f.MemoryMiB}, {"disk_gib", f.DiskGiB}} {
			if size.amount < 0 {
				errs.Add(at+"."+size.name, "%d must not be negative", size.amount)
			}
		}
	}
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

// SetDefaults implements Object. A namespace in the metadata is read as the
// owner, as that of a cluster is.
func (c *Cloud) SetDefaults() {
	c.Kind = KindCloud
	setOwner(&c.Metadata, &c.Spec.Namespace)
	c.Metadata.setDefaults(Global)
	setDefaultWeights(c.Spec.Metrics)
	c.Spec.OpenStack.setDefaults()
}

// Owners are the namespaces that the cloud belongs to; none = everybody's.
func (c *Cloud) Owners() []string {
	if c.Spec.Namespace == "" {
		return nil
	}
	return []string{c.Spec.Namespace}
}

// Serves reports whether a cluster may have something from the cloud: those who own
// the cluster must be among those who may see the cloud.
func (c *Cloud) Serves(cluster *Cluster) bool {
	return c.Spec.Namespace == "" || !slices.ContainsFunc(cluster.Owners(), func(owner string) bool { return owner != c.Spec.Namespace })
}

// Validate implements Object.
func (c *Cloud) Validate() FieldErrors {
	var errs FieldErrors
	c.Metadata.validate(Global, &errs)
	if c.Spec.Namespace != "" {
		errs.check("spec.namespace", checkName(c.Spec.Namespace))
	}
	validateMetricRefs(&errs, c.Spec.Metrics)
	for i, ref := range c.Spec.Metrics {
		// What everybody is bound by must not depend on what one namespace owns.
		if c.Spec.Namespace == "" && ref.Namespace != "" {
			errs.Add(index("spec.metrics", i)+".namespace", "must be absent: a cloud without a namespace is rated by global metrics only")
		}
	}
	c.Spec.OpenStack.validate(&errs)
	return errs
}
