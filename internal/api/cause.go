package api

// CauseType is what kind of change made a decision move.
type CauseType string

// Types of causes.
const (
	// CauseSpec: somebody wrote the object itself, or created or deleted it.
	CauseSpec CauseType = "spec"
	// CauseReschedule: somebody asked for a fresh decision.
	CauseReschedule CauseType = "reschedule"
	// CausePreview: the decision was committed as it was previewed.
	CausePreview CauseType = "preview"
	// CauseCluster: a cluster was created, changed or deleted.
	CauseCluster CauseType = "cluster"
	// CausePolicy: the propagation policy that a workload follows changed, or it follows another.
	CausePolicy CauseType = "policy"
	// CauseClusterSet: a cluster set changed, or a cluster became or ceased to be its member.
	CauseClusterSet CauseType = "cluster_set"
	// CauseMetric: the value of a metric changed, or the metric itself.
	CauseMetric CauseType = "metric"
	// CauseScore: a placement score was written or deleted.
	CauseScore CauseType = "score"
	// CauseTaint: a cluster got or lost a taint.
	CauseTaint CauseType = "taint"
	// CauseClusterOffline: a cluster stopped being online.
	CauseClusterOffline CauseType = "cluster_offline"
	// CauseClusterBack: a cluster is online again.
	CauseClusterBack CauseType = "cluster_back"
	// CauseCapacity: a cluster has more or less room.
	CauseCapacity CauseType = "capacity"
	// CausePreemption: a workload of a higher priority took the room.
	CausePreemption CauseType = "preemption"
	// CauseFailBack: an affinity group or tier before the present one has had room for long enough.
	CauseFailBack CauseType = "fail_back"
	// CauseHealth: the workload was reported to be unhealthy, or healthy again, on a cluster.
	CauseHealth CauseType = "health"
	// CauseTime: a toleration, a score or reschedule_after ran out.
	CauseTime CauseType = "time"
	// CauseWindowOpened: a move that was held was allowed.
	CauseWindowOpened CauseType = "window_opened"
	// CauseStage: the next step of a move in stages.
	CauseStage CauseType = "stage"
	// CauseUnknown: nothing that the server knows of changed, as after a time in which no server ran.
	CauseUnknown CauseType = "unknown"
)

// CauseTypes are all types of causes.
var CauseTypes = []CauseType{
	CauseSpec, CauseReschedule, CausePreview, CauseCluster, CausePolicy, CauseClusterSet, CauseMetric, CauseScore,
	CauseTaint, CauseClusterOffline, CauseClusterBack, CauseCapacity, CausePreemption, CauseFailBack, CauseHealth,
	CauseTime, CauseWindowOpened, CauseStage, CauseUnknown,
}

// CheckCauseType says why a text is no type of causes, or returns "".
func CheckCauseType(text string) string { return oneOf(CauseType(text), CauseTypes...) }

// Cause is the change that made a decision move. It is immutable, and many decisions may share it.
type Cause struct {
	Type   CauseType `json:"type" enum:"spec,reschedule,preview,cluster,policy,cluster_set,metric,score,taint,cluster_offline,cluster_back,capacity,preemption,fail_back,health,time,window_opened,stage,unknown" doc:"Kind of change: 'spec' (the object itself was written, created or deleted), 'reschedule' (a fresh decision was requested), 'preview' (a previewed decision was committed), 'cluster', 'policy', 'cluster_set', 'metric', 'score' or 'taint' (that changed), 'cluster_offline', 'cluster_back', 'capacity' (there is more or less room), 'preemption' (a workload of a higher priority took the room), 'fail_back', 'health' (a report about the workload), 'time' (a toleration, a score or 'reschedule_after' ran out), 'window_opened' (a move that was held was allowed), 'stage' (the next step of a staged move), or 'unknown'."`
	Object *Key      `json:"object,omitempty" doc:"Object that changed. Absent if it is not known, or if the reader may not read it."`
	Field  string    `json:"field,omitempty" doc:"Field that changed, such as 'status.value'. Absent if the whole object was created or deleted."`
	Old    string    `json:"old,omitempty" doc:"Value before. Lists and blocks are JSON. Absent if there was none, if it is not known, or if the reader may not read it."`
	New    string    `json:"new,omitempty" doc:"Value after. Absent if there is none, or if the reader may not read it."`
}
