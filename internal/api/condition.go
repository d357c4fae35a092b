package api

import (
	"slices"
	"time"
)

// ConditionStatus is the status of a condition: true, false or unknown.
type ConditionStatus string

// Condition statuses.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Condition types.
const (
	// ConditionReady of a cluster: it can be reached and accepts workloads.
	ConditionReady = "Ready"
	// ConditionMetricsAvailable of a cluster: each of its metrics has a usable value.
	ConditionMetricsAvailable = "MetricsAvailable"
	// ConditionAvailable of a metric: its provider returns a valid value.
	ConditionAvailable = "Available"
	// ConditionScheduled of a placement: it has at least one cluster, or asks for none.
	ConditionScheduled = "Scheduled"
	// ConditionSatisfied of a placement: it has as many clusters as it asks for.
	ConditionSatisfied = "Satisfied"
	// ConditionScoresValid of a placement that uses placement scores: none of the scores of the
	// clusters that fit has expired.
	ConditionScoresValid = "ScoresValid"
	// conditionValid of a placement score: it has not expired.
	conditionValid = "Valid"
	// ConditionFailoverHeld of a workload: it stays on clusters that are not online, because too
	// large a share of the fleet was lost at once.
	ConditionFailoverHeld = "FailoverHeld"
	// ConditionBound of a cluster: a cloud was chosen for it. Of a Magnum cluster: an OpenStack
	// project was chosen for it.
	ConditionBound = "Bound"
	// ConditionCollected of a cloud: the data of all its regions is current.
	ConditionCollected = "Collected"
	// ConditionObserved of a cluster with a kubeconfig: its resources are watched.
	ConditionObserved = "Observed"
	// ConditionResourcesGone of a cluster: a resource that was observed is gone and now counts as
	// 0. The condition is only present while that is so.
	ConditionResourcesGone = "ResourcesGone"
	// ConditionSpotReady of a cluster with spot enabled: the server admits new pods and sees nodes
	// and pods.
	ConditionSpotReady = "SpotReady"
	// ConditionDistributed of a workload with a distribution: its pods are split as requested in
	// every cluster.
	ConditionDistributed = "Distributed"
	// ConditionReferencesResolved of an object: the objects that it refers to exist. The condition
	// is only present if one does not.
	ConditionReferencesResolved = "ReferencesResolved"
	// ConditionWorkloadsSelected of a propagation policy: it selects at least one workload. The
	// condition is only present if it selects none.
	ConditionWorkloadsSelected = "WorkloadsSelected"
	// ConditionMisconfigured of a placement: it refers to something that does not exist.
	ConditionMisconfigured = "Misconfigured"
	// ConditionMetricsUnread of a placement or workload: a metric that its decision depends on cannot
	// be read. The condition is only present while that is so.
	ConditionMetricsUnread = "MetricsUnread"
	// ConditionExpressionsPending of a placement: its expressions take too long to be evaluated for all
	// clusters at once. Its decision stays until they have been. The condition is only present while
	// that is so.
	ConditionExpressionsPending = "ExpressionsPending"
	// ConditionFaulted of an object: the server failed while processing the object and skips it.
	// The condition is only present while that is so.
	ConditionFaulted = "Faulted"
	// ConditionMoveHeld of a placement or workload: its decision is not updated for now. The
	// condition is only present while that is so.
	ConditionMoveHeld = "MoveHeld"
)

// Reasons of Faulted.
const (
	// ReasonServerFault: processing the object panicked.
	ReasonServerFault = "ServerFault"
	// ReasonDamaged: the stored object is damaged; an intact earlier version is shown.
	ReasonDamaged = "Damaged"
)

// ReasonInputLost is a reason of MoveHeld: an object that the decision depends on is damaged in the
// store, or faulted.
const ReasonInputLost = "InputLost"

// ReasonHeldByWindow is a reason of MoveHeld: a move window keeps the decision where it is, unless it has to move.
const ReasonHeldByWindow = "HeldByWindow"

// Reasons of a metric's Available condition.
const (
	ReasonAvailable                  = "Available"
	ReasonPending                    = "Pending"
	ReasonInvalidMetric              = "InvalidMetric"
	ReasonUnreachableMetricsProvider = "UnreachableMetricsProvider"
	ReasonUnknownMetricsProvider     = "UnknownMetricsProvider"
	ReasonUnknownMetric              = "UnknownMetric"
)

// Reasons of a placement's conditions.
const (
	ReasonScheduled          = "Scheduled"
	ReasonNoSuitableClusters = "NoSuitableClusters"
	ReasonTooFewClusters     = "TooFewClusters"
	ReasonSatisfied          = "Satisfied"
	ReasonNoClustersWanted   = "NoClustersWanted"
	ReasonAllFitting         = "AllFittingClusters"
	ReasonWellConfigured     = "WellConfigured"
	ReasonUnknownMetrics     = "UnknownMetrics"
)

// Reasons of Satisfied and Misconfigured for placements that use prioritizers. They are the same as
// in Open Cluster Management.
const (
	ReasonAllDecisionsScheduled    = "AllDecisionsScheduled"
	ReasonNotAllDecisionsScheduled = "NotAllDecisionsScheduled"
	ReasonNoManagedClusterMatched  = "NoManagedClusterMatched"
	ReasonNoIntersection           = "NoIntersection"
	ReasonAllClusterSetsEmpty      = "AllManagedClusterSetsEmpty"
	ReasonSucceedConfigured        = "Succeedconfigured"
	ReasonMisconfigured            = "Misconfigured"
)

// Reasons of a workload's Scheduled condition, besides Scheduled.
const (
	// ReasonNoPolicyMatched: no propagation policy selects the workload.
	ReasonNoPolicyMatched = "NoPolicyMatched"
	// ReasonNoClusterFit: no cluster of any affinity group fits.
	ReasonNoClusterFit = "NoClusterFit"
	// ReasonUnschedulable: clusters fit, but there are too few of them or they lack capacity.
	ReasonUnschedulable = "Unschedulable"
)

// ReasonWithheld replaces the value of a metric that the reader may not read.
const ReasonWithheld = "Withheld"

// Reasons of ReferencesResolved and WorkloadsSelected.
const (
	ReasonUnknownReference = "UnknownReference"
	ReasonNothingSelected  = "NothingSelected"
)

// Reasons of Bound.
const (
	ReasonBound             = "Bound"
	ReasonNoSuitableCloud   = "NoSuitableCloud"
	ReasonNoSuitableProject = "NoSuitableProject"
)

// Reasons of Collected.
const (
	ReasonCollected         = "Collected"
	ReasonAwaitingCollector = "AwaitingCollector"
	ReasonUnauthorized      = "Unauthorized"
	ReasonRegionFailed      = "RegionFailed"
)

// Reasons of ResourcesGone.
const (
	// ReasonCloudGone: the cloud of the zone no longer exists.
	ReasonCloudGone = "CloudGone"
	// ReasonRegionGone: the cloud does not have the region.
	ReasonRegionGone = "RegionGone"
	// ReasonZoneGone: the region does not have the availability zone.
	ReasonZoneGone = "ZoneGone"
	// ReasonZoneNotObserved: the zone was observed before, but the cloud has since been recreated
	// and not been collected yet.
	ReasonZoneNotObserved = "NotObserved"
	// ReasonNoHosts: no host in the availability zone accepts machines.
	ReasonNoHosts = "NoHosts"
	// ReasonNoNodes: the cluster has no nodes.
	ReasonNoNodes = "NoNodes"
	// ReasonNotReported: resources of earlier reports are missing in the last report.
	ReasonNotReported = "NotReported"
)

// Reasons of Observed, besides Unauthorized.
const (
	ReasonObserved = "Observed"
	// ReasonUnreachable: the API server does not respond.
	ReasonUnreachable = "Unreachable"
	// ReasonForbidden: the credentials do not permit reading everything that is watched.
	ReasonForbidden = "Forbidden"
	// ReasonInvalidKubeconfig: the kubeconfig cannot be used to connect.
	ReasonInvalidKubeconfig = "InvalidKubeconfig"
	// ReasonIncomplete: a part could not be read.
	ReasonIncomplete = "Incomplete"
)

// Reasons of Distributed.
const (
	ReasonConverged    = "Converged"
	ReasonConverging   = "Converging"
	ReasonNotObserved  = "NotObserved"
	ReasonNotSplit     = "NotSplit"
	ReasonFallenBack   = "FallenBack"
	ReasonBlockedSplit = "Blocked"
)

// Reasons of FailoverHeld.
const (
	ReasonManyClustersLost = "ManyClustersLost"
	ReasonNotHeld          = "NotHeld"
)

// Reasons of ScoresValid and Valid.
const (
	ReasonValid   = "Valid"
	ReasonExpired = "Expired"
)

// ReasonExpensive is the reason of ExpressionsPending.
const ReasonExpensive = "Expensive"

// Condition is one observation about an object.
type Condition struct {
	Type             string          `json:"type" doc:"What the condition is about."`
	Status           ConditionStatus `json:"status" enum:"True,False,Unknown" doc:"Whether the condition holds."`
	Reason           string          `json:"reason,omitempty" doc:"Reason, as one word."`
	Message          string          `json:"message,omitempty" doc:"Explanation, as a sentence."`
	Detail           string          `json:"detail,omitempty" doc:"Verbatim message of another server, such as a metrics provider. Shown only to users who may write the object that contains that server's address."`
	LastTransitionAt *time.Time      `json:"last_transition_at,omitempty" doc:"When the status last changed."`
}

// CopyWith returns a copy of an object with additional conditions. If its kind has no conditions,
// they are dropped.
func CopyWith(object Object, more ...Condition) Object {
	object = object.Copy()
	if list := ConditionsOf(object); list != nil {
		*list = append(slices.Clip(slices.Clone(*list)), more...)
	}
	return object
}

// FindCondition returns the condition of the given type, or nil.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// SetCondition replaces the condition of the same type, or adds c, and reports whether that changed
// anything. The transition time is kept if the status is unchanged, and set to now otherwise. The
// list is replaced rather than modified.
func SetCondition(conditions *[]Condition, c Condition, now time.Time) (changed bool) {
	at := slices.IndexFunc(*conditions, func(old Condition) bool { return old.Type == c.Type })
	if at < 0 {
		c.LastTransitionAt = stamp(now)
		*conditions = append(slices.Clip(*conditions), c)
		return true
	}
	old := (*conditions)[at]
	dated := old.LastTransitionAt != nil
	same := old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message && old.Detail == c.Detail
	if !same || !dated {
		if c.LastTransitionAt = old.LastTransitionAt; old.Status != c.Status || !dated {
			c.LastTransitionAt = stamp(now)
		}
		*conditions = slices.Clone(*conditions)
		(*conditions)[at] = c
	}
	return !same
}

// stamp returns a time in UTC, as statuses have it. It allocates, so it is only called when a
// condition changes.
func stamp(now time.Time) *time.Time {
	now = now.UTC()
	return &now
}

// RemoveCondition removes the condition of the given type and reports whether there was one. The
// list is replaced rather than modified.
func RemoveCondition(conditions *[]Condition, conditionType string) (changed bool) {
	if FindCondition(*conditions, conditionType) == nil {
		return false
	}
	*conditions = slices.DeleteFunc(slices.Clone(*conditions), func(c Condition) bool { return c.Type == conditionType })
	if len(*conditions) == 0 {
		*conditions = nil // same as after decoding
	}
	return true
}

// HasDetails reports whether a condition of an object contains text from another server.
func HasDetails(object Object) bool {
	conditions := ConditionsOf(object)
	return conditions != nil && slices.ContainsFunc(*conditions, func(c Condition) bool { return c.Detail != "" })
}

// WithoutDetails returns an object without text from other servers. If there is none, it returns
// the same object.
func WithoutDetails(object Object) Object {
	if !HasDetails(object) {
		return object
	}
	shown := object.Copy()
	conditions := slices.Clone(*ConditionsOf(object))
	for i := range conditions {
		conditions[i].Detail = ""
	}
	*ConditionsOf(shown) = conditions
	return shown
}

// ConditionsOf returns the conditions of an object, or nil if its kind has none.
func ConditionsOf(object Object) *[]Condition {
	switch o := object.(type) {
	case *Cluster:
		return &o.Status.Conditions
	case *Cloud:
		return &o.Status.Conditions
	case *OpenStackProject:
		return &o.Status.Conditions
	case *MagnumCluster:
		return &o.Status.Conditions
	case *MetricsProvider:
		return &o.Status.Conditions
	case *Metric:
		return &o.Status.Conditions
	case *ClusterSet:
		return &o.Status.Conditions
	case *PlacementScore:
		return &o.Status.Conditions
	case *Placement:
		return &o.Status.Conditions
	case *PropagationPolicy:
		return &o.Status.Conditions
	case *Workload:
		return &o.Status.Conditions
	}
	return nil
}
