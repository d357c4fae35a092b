package api

// CauseType is the kind of change that made a decision differ.
type CauseType string

// Types of causes.
const (
	// CauseSpec: the object itself was written.
	CauseSpec CauseType = "spec"
	// CauseReschedule: a fresh decision was requested.
	CauseReschedule CauseType = "reschedule"
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
	// CauseClusterOffline: a cluster is no longer online.
	CauseClusterOffline CauseType = "cluster_offline"
	// CauseClusterBack: a cluster is online again.
	CauseClusterBack CauseType = "cluster_back"
	// CauseCapacity: a cluster has more or less room.
	CauseCapacity CauseType = "capacity"
	// CausePreemption: a workload of a higher priority took the room.
	CausePreemption CauseType = "preemption"
	// CauseFailBack: an earlier affinity group or tier has had room for long enough.
	CauseFailBack CauseType = "fail_back"
	// CauseHealth: the workload was reported to be unhealthy, or healthy again, on a cluster.
	CauseHealth CauseType = "health"
	// CauseTime: a toleration, a score or reschedule_after ran out.
	CauseTime CauseType = "time"
	// CauseWindowOpened: a move window no longer holds the decision.
	CauseWindowOpened CauseType = "window_opened"
	// CauseUnknown: nothing that the server knows of changed, as after a time in which no server ran.
	CauseUnknown CauseType = "unknown"
)

// Cause is the change that made a decision differ from the one before. It is immutable, and many
// decisions may share it.
type Cause struct {
	Type   CauseType `json:"type" enum:"spec,reschedule,cluster,policy,cluster_set,metric,score,taint,cluster_offline,cluster_back,capacity,preemption,fail_back,health,time,window_opened,unknown" doc:"Kind of change: 'spec' (the object itself was written), 'reschedule' (a fresh decision was requested), 'cluster', 'policy', 'cluster_set', 'metric', 'score' or 'taint' (that changed), 'cluster_offline', 'cluster_back', 'capacity' (there is more or less room), 'preemption' (a workload of a higher priority took the room), 'fail_back', 'health' (a report about the workload), 'time' (a toleration, a score or 'reschedule_after' ran out), 'window_opened' (a move window no longer holds the decision), or 'unknown'."`
	Object *Key      `json:"object,omitempty" doc:"Object that changed. Absent if it is not known, or if the reader may not read it."`
	Field  string    `json:"field,omitempty" doc:"Field that changed, such as 'status.value'. Absent if the whole object was created or deleted."`
	Old    string    `json:"old,omitempty" doc:"Value before. Lists and blocks are JSON. Absent if there was none, if it is not known, or if the reader may not read it."`
	New    string    `json:"new,omitempty" doc:"Value after. Absent if there is none, or if the reader may not read it."`
	Actor  *Actor    `json:"actor,omitempty" doc:"Who made the change, if somebody wrote the object. Absent if it is not known, or if the reader may not read the object."`
}
