package api

import (
	"slices"
	"time"
)

// ConditionStatus is the answer a condition gives.
type ConditionStatus string

// The answers of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// The types of condition.
const (
	// ConditionReady of a cluster: it can be reached and takes workloads.
	ConditionReady = "Ready"
	// ConditionMetricsAvailable of a cluster: every metric it lists has a usable
	// value.
	ConditionMetricsAvailable = "MetricsAvailable"
	// ConditionAvailable of a metric: its provider gives a valid value.
	ConditionAvailable = "Available"
	// ConditionScheduled of a placement: it has at least one cluster, or wants
	// none.
	ConditionScheduled = "Scheduled"
	// ConditionSatisfied of a placement: it has as many clusters as it wants.
	ConditionSatisfied = "Satisfied"
	// ConditionScoresValid of a placement that ranks by placement scores: none of
	// those of the clusters that fit has expired.
	ConditionScoresValid = "ScoresValid"
	// ConditionValid of a placement score: it has not expired.
	ConditionValid = "Valid"
	// ConditionFailoverHeld of a workload: it stays on clusters that are not
	// online, because too large a share of the fleet went at once.
	ConditionFailoverHeld = "FailoverHeld"
	// ConditionBound of a cluster: a cloud was chosen to create it on. Of a Magnum
	// cluster: an OpenStack project was.
	ConditionBound = "Bound"
	// ConditionCollected of a cloud: the figures of all of its regions are current.
	ConditionCollected = "Collected"
	// ConditionObserved of a cluster with a kubeconfig: what it has is watched.
	ConditionObserved = "Observed"
	// ConditionResourcesGone of a cluster: something that was observed is no longer
	// there, and the cluster has 0 of it. It is there only while that is so.
	ConditionResourcesGone = "ResourcesGone"
	// ConditionSpotReady of a cluster with spot enabled: new pods pass through the
	// server, and it sees what there is.
	ConditionSpotReady = "SpotReady"
	// ConditionDistributed of a workload with a distribution: its pods are split as
	// wanted in every cluster.
	ConditionDistributed = "Distributed"
	// ConditionReferencesResolved of an object: what it names is there. It is there
	// only where that is not so.
	ConditionReferencesResolved = "ReferencesResolved"
	// ConditionWorkloadsSelected of a propagation policy: there is a workload that it
	// is for. It is there only where that is not so.
	ConditionWorkloadsSelected = "WorkloadsSelected"
	// ConditionMisconfigured of a placement: it refers to something that does
	// not exist.
	ConditionMisconfigured = "Misconfigured"
	// ConditionFaulted of an object: the server failed when it worked on it, and
	// leaves it out. It is there only while that is so.
	ConditionFaulted = "Faulted"
	// ConditionMoveHeld of a placement or workload: its decision is not made again
	// for now. It is there only while that is so.
	ConditionMoveHeld = "MoveHeld"
)

// The reasons of Faulted.
const (
	// ReasonServerFault: working on the object panicked.
	ReasonServerFault = "ServerFault"
	// ReasonDamaged: what is stored of the object is damaged; an earlier version,
	// which is sound, is shown.
	ReasonDamaged = "Damaged"
)

// ReasonInputLost of MoveHeld: something that the decision rests on is damaged in the
// store, or faulted.
const ReasonInputLost = "InputLost"

// The reasons of a metric's Available condition.
const (
	ReasonAvailable                  = "Available"
	ReasonPending                    = "Pending"
	ReasonInvalidMetric              = "InvalidMetric"
	ReasonUnreachableMetricsProvider = "UnreachableMetricsProvider"
	ReasonUnknownMetricsProvider     = "UnknownMetricsProvider"
	ReasonUnknownMetric              = "UnknownMetric"
)

// The reasons of a placement's conditions.
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

// The reasons of Satisfied and Misconfigured where placements are decided by
// prioritizers: those of Open Cluster Management.
const (
	ReasonAllDecisionsScheduled    = "AllDecisionsScheduled"
	ReasonNotAllDecisionsScheduled = "NotAllDecisionsScheduled"
	ReasonNoManagedClusterMatched  = "NoManagedClusterMatched"
	ReasonNoIntersection           = "NoIntersection"
	ReasonAllClusterSetsEmpty      = "AllManagedClusterSetsEmpty"
	ReasonSucceedConfigured        = "Succeedconfigured"
	ReasonMisconfigured            = "Misconfigured"
)

// The reasons of a workload's Scheduled condition besides Scheduled.
const (
	// ReasonNoPolicyMatched says that no propagation policy selects the workload.
	ReasonNoPolicyMatched = "NoPolicyMatched"
	// ReasonNoClusterFit says that no cluster of any affinity group fits.
	ReasonNoClusterFit = "NoClusterFit"
	// ReasonUnschedulable says that clusters fit, and have too little room or are
	// too few.
	ReasonUnschedulable = "Unschedulable"
)

// ReasonWithheld stands in place of the value of a metric that the reader may not
// read.
const ReasonWithheld = "Withheld"

// The reasons of ReferencesResolved and WorkloadsSelected.
const (
	ReasonUnknownReference = "UnknownReference"
	ReasonNothingSelected  = "NothingSelected"
)

// The reasons of Bound.
const (
	ReasonBound             = "Bound"
	ReasonNoSuitableCloud   = "NoSuitableCloud"
	ReasonNoSuitableProject = "NoSuitableProject"
)

// The reasons of Collected.
const (
	ReasonCollected         = "Collected"
	ReasonAwaitingCollector = "AwaitingCollector"
	ReasonUnauthorized      = "Unauthorized"
	ReasonRegionFailed      = "RegionFailed"
)

// The reasons of ResourcesGone.
const (
	// ReasonCloudGone says that there is no cloud any more whose zone the cluster
	// stands for.
	ReasonCloudGone = "CloudGone"
	// ReasonRegionGone says that the cloud does not have the region.
	ReasonRegionGone = "RegionGone"
	// ReasonZoneGone says that the region does not have the availability zone.
	ReasonZoneGone = "ZoneGone"
	// ReasonZoneNotObserved says that the zone was observed once, and that the cloud
	// was made anew and has not been collected since.
	ReasonZoneNotObserved = "NotObserved"
	// ReasonNoHosts says that no host of the availability zone takes machines.
	ReasonNoHosts = "NoHosts"
	// ReasonNoNodes says that the cluster has no nodes.
	ReasonNoNodes = "NoNodes"
	// ReasonNotReported says that resources are missing in the last report which
	// those before it had.
	ReasonNotReported = "NotReported"
)

// The reasons of Observed besides Unauthorized.
const (
	ReasonObserved = "Observed"
	// ReasonUnreachable says that the API server gives no answer.
	ReasonUnreachable = "Unreachable"
	// ReasonForbidden says that the credentials may not read all that is watched.
	ReasonForbidden = "Forbidden"
	// ReasonInvalidKubeconfig says that there is nothing to connect with.
	ReasonInvalidKubeconfig = "InvalidKubeconfig"
	// ReasonIncomplete says that a part could not be read.
	ReasonIncomplete = "Incomplete"
)

// The reasons of Distributed.
const (
	ReasonConverged    = "Converged"
	ReasonConverging   = "Converging"
	ReasonNotObserved  = "NotObserved"
	ReasonNotSplit     = "NotSplit"
	ReasonFallenBack   = "FallenBack"
	ReasonBlockedSplit = "Blocked"
)

// The reasons of FailoverHeld.
const (
	ReasonManyClustersLost = "ManyClustersLost"
	ReasonNotHeld          = "NotHeld"
)

// The reasons of ScoresValid and Valid.
const (
	ReasonValid   = "Valid"
	ReasonExpired = "Expired"
)

// Condition is one observation about an object.
type Condition struct {
	Type             string          `json:"type" doc:"What the condition is about."`
	Status           ConditionStatus `json:"status" enum:"True,False,Unknown" doc:"Whether the condition holds."`
	Reason           string          `json:"reason,omitempty" doc:"Reason, as one word."`
	Message          string          `json:"message,omitempty" doc:"Explanation, as a sentence."`
	Detail           string          `json:"detail,omitempty" doc:"Verbatim message of another server, such as a metrics provider. Shown only to users who may write the object that contains that server's address."`
	LastTransitionAt *time.Time      `json:"last_transition_at,omitempty" doc:"When the status last changed."`
}

// CopyWith is a copy of an object with more conditions, where its kind has any.
func CopyWith(object Object, more ...Condition) Object {
	object = object.Copy()
	if list := ConditionsOf(object); list != nil {
		*list = append(slices.Clip(slices.Clone(*list)), more...)
	}
	return object
}

// FindCondition returns the condition of a type, nil when there is none.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// SetCondition puts c in the place of the condition of its type, and reports whether
// it says anything else than that one. The transition time stays where the status
// stays, and becomes now where it changes. A list that changes is replaced, not
// written.
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

// stamp is a time as statuses have it. It is only made where it is needed: most
// conditions stay as they are.
func stamp(now time.Time) *time.Time {
	now = now.UTC()
	return &now
}

// RemoveCondition takes the condition of a type away, and reports whether there was
// one. A list that changes is replaced, not written.
func RemoveCondition(conditions *[]Condition, conditionType string) (changed bool) {
	if FindCondition(*conditions, conditionType) == nil {
		return false
	}
	*conditions = slices.DeleteFunc(slices.Clone(*conditions), func(c Condition) bool { return c.Type == conditionType })
	if len(*conditions) == 0 {
		*conditions = nil // as it is when it is read back
	}
	return true
}

// HasDetails reports whether a condition of an object has words of another server.
func HasDetails(object Object) bool {
	conditions := ConditionsOf(object)
	return conditions != nil && slices.ContainsFunc(*conditions, func(c Condition) bool { return c.Detail != "" })
}

// WithoutDetails is an object without the words of other servers; the same one where
// it has none.
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

// ConditionsOf is the list of conditions of an object, nil for a kind that has none.
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
