package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DistributionSpec configures how the replicas of a workload are split between on-demand and spot
// nodes within each of its clusters.
type DistributionSpec struct {
	Mode           DistributionMode `json:"mode,omitempty" enum:"all_in_on_demand,all_in_spot,majority_in_on_demand,custom" doc:"Where the replicas run in each cluster; 'majority_in_on_demand' is more than half of them on on-demand nodes. If omitted, a Deployment runs on spot nodes, a StatefulSet with one replica on an on-demand node, and a larger StatefulSet with more than half of its replicas on on-demand nodes."`
	CustomOnDemand OnDemandAmount   `json:"custom_on_demand,omitempty" doc:"Replicas on on-demand nodes if 'mode' is 'custom': a number ('\"3\"') for all clusters together, or a percentage ('\"30%\"'), rounded up in each cluster. Required if 'mode' is 'custom', and ignored otherwise."`
}

// DistributionMode is how replicas are split.
type DistributionMode string

// Distribution modes.
const (
	// ModeDefault derives the mode from the kind and size of the workload.
	ModeDefault            DistributionMode = ""
	ModeAllInOnDemand      DistributionMode = "all_in_on_demand"
	ModeAllInSpot          DistributionMode = "all_in_spot"
	ModeMajorityInOnDemand DistributionMode = "majority_in_on_demand"
	// ModeCustom uses custom_on_demand.
	ModeCustom DistributionMode = "custom"
)

// DistributionModes are the modes that users can choose.
var DistributionModes = []DistributionMode{ModeAllInOnDemand, ModeAllInSpot, ModeMajorityInOnDemand, ModeCustom}

// OnDemandAmount is how many replicas run on on-demand nodes: "3" or "30%".
type OnDemandAmount string

// Parse parses the amount: a count of at least 0, or a percentage from 0 to 100.
func (a OnDemandAmount) Parse() (n int64, percent bool, err error) {
	text := string(a)
	digits, percent := strings.CutSuffix(text, "%")
	n, err = strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || strconv.FormatInt(n, 10) != digits || n < 0 || n > maxReplicas:
		return 0, false, fmt.Errorf("%q is neither a number of replicas from 0 to %d, such as \"3\", nor a percentage such as \"30%%\"", text, maxReplicas)
	case percent && n > 100:
		return 0, false, fmt.Errorf("%q is more than 100%%", text)
	}
	return n, percent, nil
}

// Distributable reports whether pods of this kind can be split: only those of Deployments and
// StatefulSets can.
func (s *WorkloadSpec) Distributable() bool {
	return s.APIVersion == "apps/v1" && (s.Kind == KindDeployment || s.Kind == KindStatefulSet)
}

// Kinds whose pods can be split.
const (
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
)

func (d *DistributionSpec) validate(errs *FieldErrors, w *WorkloadSpec) {
	const at = "spec.distribution"
	if !w.Distributable() {
		errs.Add(at, "%s has no pods that can be split: only Deployment and StatefulSet of apps/v1 have", quote(w.APIResource()))
	}
	switch {
	case d.CustomOnDemand != "":
		if _, _, err := d.CustomOnDemand.Parse(); err != nil {
			errs.Add(at+".custom_on_demand", "%s", err)
		}
	case d.Mode == ModeCustom:
		errs.Add(at+".custom_on_demand", "is required with mode \"custom\": a number of replicas such as \"3\", or a percentage such as \"30%%\"")
	}
}

// DistributionState is the state of a workload's split in a cluster.
type DistributionState string

// Distribution states.
const (
	// DistributionConverged: every pod is where it should be.
	DistributionConverged DistributionState = "converged"
	// DistributionReplacing: pods are being replaced, one at a time.
	DistributionReplacing DistributionState = "replacing"
	// DistributionWaiting: pods will be replaced once the event named in the message is over.
	DistributionWaiting DistributionState = "waiting"
	// DistributionDegraded: the split is right, but some pods meant for spot nodes run on on-demand
	// nodes, because there are too few spot nodes.
	DistributionDegraded DistributionState = "degraded"
	// DistributionBlocked: the split cannot be reached; the message says why.
	DistributionBlocked DistributionState = "blocked"
	// DistributionAbsent: the cluster has no such workload.
	DistributionAbsent DistributionState = "absent"
	// DistributionUnmanaged: the workload is not split in the cluster, because spot is disabled for
	// the cluster or a label excludes the workload.
	DistributionUnmanaged DistributionState = "unmanaged"
)

// ClusterDistribution is the observed split of a workload in one cluster.
type ClusterDistribution struct {
	Cluster        string            `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Replicas       int64             `json:"replicas" doc:"Replicas in the workload's own spec in the cluster."`
	Mode           DistributionMode  `json:"mode,omitempty" doc:"Mode in force."`
	TargetOnDemand int64             `json:"target_on_demand" doc:"Number of pods that should be on on-demand nodes."`
	TargetSpot     int64             `json:"target_spot" doc:"Number of pods that should be on spot nodes."`
	OnDemand       int64             `json:"on_demand" doc:"Number of pods created for on-demand nodes. A pod created before the split counts where it runs."`
	Spot           int64             `json:"spot" doc:"Number of pods created for spot nodes. A pod created before the split counts where it runs."`
	FallenBack     int64             `json:"fallen_back,omitempty" doc:"Number of pods meant for spot nodes that run on on-demand nodes."`
	Replaced       int64             `json:"replaced,omitempty" doc:"Number of pods replaced since the server started."`
	State          DistributionState `json:"state" enum:"converged,replacing,waiting,degraded,blocked,absent,unmanaged" doc:"'converged': every pod is where it should be. 'replacing': pods are being replaced, one at a time. 'waiting': pods are to be replaced; 'message' says what must finish first. 'degraded': pods meant for spot nodes run on on-demand nodes, because there are too few spot nodes. 'blocked': the split cannot be reached; 'message' says why. 'absent': the cluster has no such workload. 'unmanaged': the workload is not split in the cluster."`
	Message        string            `json:"message,omitempty" doc:"What is being done, or what prevents it."`
	ObservedAt     *time.Time        `json:"observed_at,omitempty" doc:"When this was last observed to change."`
}

// Same reports whether two observations are equal apart from their time.
func (d ClusterDistribution) Same(other ClusterDistribution) bool {
	d.ObservedAt, other.ObservedAt = nil, nil
	return d == other
}

// DistributedWorkload is a workload whose pods are split in a cluster, either because of a
// scheduler_workload or because of its own labels.
type DistributedWorkload struct {
	Kind      string             `json:"kind" doc:"'Deployment' or 'StatefulSet'."`
	Namespace string             `json:"namespace" doc:"Namespace in the cluster."`
	Name      string             `json:"name" doc:"Name of the Deployment or StatefulSet."`
	Source    DistributionSource `json:"source" enum:"workload,labels" doc:"What requests the split: 'workload' (the workload object with the same namespace and name) or 'labels' (the labels of the resource in the cluster)."`
	ClusterDistribution
}

// DistributionSource is what requests a split.
type DistributionSource string

// Sources of a split.
const (
	DistributionOfWorkload DistributionSource = "workload"
	DistributionOfLabels   DistributionSource = "labels"
)
