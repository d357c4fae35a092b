package columns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// StandsForObserved reports whether a cluster represents an availability zone whose amounts are
// observed.
func StandsForObserved(c *api.Cluster, cloud *api.Cloud) bool {
	o := c.Spec.OpenStack
	return o != nil && cloud != nil && cloud.Status.Region(o.Region).Zone(o.AvailabilityZone) != nil
}

// standFor sets the amounts and flavors of a cluster to those of an availability zone. cloud may be
// nil. If the region can no longer be queried, the cluster is offline, unless its own state is
// known.
//
// Amounts are unknown only if they were never observed (rule 11 of docs/architecture.md). The amounts of a cloud that
// has never been collected, or of a region that has never responded, are unknown. The cluster has 0
// of everything, including declared amounts, if the observed region lacks the zone, the observed
// cloud lacks the region, or the zone was observed before and its cloud is gone; the condition
// ResourcesGone says why. The same applies to each resource: if the zone used to have it, the
// amount is now 0. A resource that the zone never had keeps its declared amount. If it is not
// declared, there is none, as with any cluster that does not report a requested resource.
func standFor(e *api.Cluster, o *api.ClusterOpenStack, cloud *api.Cloud) {
	var region *api.CloudRegion
	if cloud != nil {
		region = cloud.Status.Region(o.Region)
	}
	zone := region.Zone(o.AvailabilityZone)
	if zone != nil {
		takeZone(e, zone)
	}
	if reason, message := zoneLack(e, o, cloud, region, zone); reason != "" {
		loseAll(e, reason, message, region)
	}
	if region == nil {
		return
	}
	flavors := slices.Clip(e.Spec.Flavors)
	for _, f := range region.Flavors {
		if !slices.ContainsFunc(e.Spec.Flavors, func(own api.ClusterFlavor) bool { return own.Name == f.Name }) {
			flavors = append(flavors, api.ClusterFlavor{Name: f.Name, VCPUs: f.VCPUs, Memory: api.Quantity(strconv.FormatInt(f.MemoryMiB, 10) + "Mi")})
		}
	}
	e.Spec.Flavors = flavors
	if region.Unreachable() && e.Status.State == "" {
		e.Status.State = api.StateOffline
		e.Status.Taints = append(slices.Clip(e.Status.Taints), api.ClusterTaint{
			Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: region.FailingSince,
		})
		e.Status.Conditions = append(slices.Clip(e.Status.Conditions), api.Condition{
			Type: api.ConditionReady, Status: api.ConditionFalse, Reason: api.ReasonRegionFailed, Message: region.Message,
			LastTransitionAt: region.FailingSince,
		})
	}
}

// takeZone sets the amounts of a cluster to those of a zone. If a report has only available
// amounts, the total is available plus allocated.
func takeZone(e *api.Cluster, zone *api.CloudZone) {
	e.Status.Capacity, e.Status.Allocatable, e.Status.Allocated = zone.Capacity, zone.Allocatable, zone.Allocated
	e.Status.CapacityReportedAt, e.Status.GoneResources = zone.ObservedAt, zone.GoneResources
	for name, total := range zone.ImpliedTotals() {
		e.Status.Allocatable = api.Overlay(e.Status.Allocatable, api.Quantities{name: api.FormatMilli(name, total)})
	}
	if len(zone.GoneResources) > 0 {
		e.Status.Conditions = api.WithResourcesGone(e.Status.Conditions, api.ReasonNotReported, api.GoneMessage(zone.GoneResources), zone.ObservedAt)
	}
}

// zoneLack returns why a cluster has nothing although it represents a zone. It returns "" if the
// cluster has what the zone has, or if that is unknown.
func zoneLack(e *api.Cluster, o *api.ClusterOpenStack, cloud *api.Cloud, region *api.CloudRegion, zone *api.CloudZone) (reason, message string) {
	remembered := e.Status.ObservedZone != nil && *e.Status.ObservedZone == *o
	switch {
	case zone != nil && zone.Hosts == 0 && nothing(e.Status.Allocatable) && nothing(e.Spec.Allocatable):
		return api.ReasonNoHosts, fmt.Sprintf("availability zone %q in region %q of cloud %q has no host that takes machines", o.AvailabilityZone, o.Region, o.Cloud)
	case zone != nil:
		return "", ""
	case cloud == nil && remembered:
		return api.ReasonCloudGone, fmt.Sprintf("there is no longer a cloud %q that the cluster may use", o.Cloud)
	case cloud == nil:
		return "", ""
	case region == nil && cloud.Status.Observed():
		return api.ReasonRegionGone, fmt.Sprintf("cloud %q has no region %q%s", o.Cloud, o.Region, hasOnly(names(cloud.Status.Regions, func(r *api.CloudRegion) string { return r.Name })))
	case region != nil && region.Observed():
		return api.ReasonZoneGone, fmt.Sprintf("region %q of cloud %q has no availability zone %q%s", o.Region, o.Cloud, o.AvailabilityZone,
			hasOnly(names(region.Zones, func(z *api.CloudZone) string { return z.Name })))
	case remembered:
		return api.ReasonZoneNotObserved, fmt.Sprintf("region %q of cloud %q has not been collected since the cloud was created again", o.Region, o.Cloud)
	}
	return "", ""
}

// nothing reports whether all amounts are 0.
func nothing(amounts api.Quantities) bool {
	for _, q := range amounts {
		if Positive(q) {
			return false
		}
	}
	return true
}

func names[T any](all []T, name func(*T) string) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = strconv.Quote(name(&all[i]))
	}
	return out
}

// maxNamedPlaces is how many regions or zones a message names.
const maxNamedPlaces = 5

// hasOnly lists the existing ones.
func hasOnly(quoted []string) string {
	if len(quoted) == 0 {
		return ""
	}
	if more := len(quoted) - maxNamedPlaces; more > 0 {
		quoted = append(slices.Clip(quoted[:maxNamedPlaces]), strconv.Itoa(more)+" more")
	}
	return ": it has " + strings.Join(quoted, ", ")
}

// loseAll sets all amounts of a cluster to 0. It also sets pods to 0, because every replica needs a
// pod, so that nothing fits whatever it requests.
func loseAll(e *api.Cluster, reason, message string, region *api.CloudRegion) {
	zero := api.Quantities{ResourceCPU: "0", ResourceMemory: "0", ResourcePods: "0"}
	for _, known := range []api.Quantities{e.Spec.Capacity, e.Spec.Allocatable, e.Status.Capacity, e.Status.Allocatable} {
		for name := range known {
			zero[name] = "0"
		}
	}
	e.Status.Capacity, e.Status.Allocatable, e.Status.Allocated = zero, zero, zero
	var at *time.Time
	if region != nil {
		at = region.ObservedAt
		e.Status.CapacityReportedAt = at
	}
	e.Status.Conditions = api.WithResourcesGone(e.Status.Conditions, reason, message, at)
}

// GoneBecause returns why a cluster no longer has any of a resource, or "" if that is not so. An
// empty resource means any resource.
func GoneBecause(c *api.Cluster, resource string) string {
	gone := api.FindCondition(c.Status.Conditions, api.ConditionResourcesGone)
	if gone == nil || gone.Reason == api.ReasonNotReported && resource != "" && !slices.Contains(c.Status.GoneResources, resource) {
		return ""
	}
	return gone.Message
}
