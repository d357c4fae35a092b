package api

import (
	"time"
)

// MagnumCluster is a cluster that OpenStack's Magnum creates. The status says in
// which project.
type MagnumCluster struct {
	Kind     Kind                `json:"kind" enum:"magnum_cluster"`
	Metadata Metadata            `json:"metadata"`
	Spec     MagnumClusterSpec   `json:"spec"`
	Status   MagnumClusterStatus `json:"status,omitzero"`
}

// MagnumClusterSpec says which projects fit.
type MagnumClusterSpec struct {
	LabelConstraints  []string    `json:"label_constraints,omitempty" doc:"Constraints that the labels of the project must fulfil, all of them."`
	MetricConstraints []string    `json:"metric_constraints,omitempty" doc:"Constraints that the metrics of the project must fulfil, all of them."`
	Metrics           []MetricRef `json:"metrics,omitempty" doc:"Metrics of the cluster itself, each with its weight; with those of its project they rate it."`
	TemplateID        string      `json:"template_id,omitempty" doc:"ID of the Magnum cluster template. Absent = that of the project."`
}

// MagnumClusterStatus is the decision.
type MagnumClusterStatus struct {
	ObservedGeneration         int64                 `json:"observed_generation,omitempty"`
	ObservedRescheduleRequests int64                 `json:"observed_reschedule_requests,omitempty"`
	Project                    string                `json:"project,omitempty" ref:"openstack_project,own,optional" doc:"Chosen project, of the same namespace."`
	Score                      *float64              `json:"score,omitempty" doc:"Score of the project when it was chosen."`
	ScheduledAt                *time.Time            `json:"scheduled_at,omitempty" doc:"When the project was chosen."`
	DecisionRevision           int64                 `json:"decision_revision,omitempty" doc:"Counts the changes of the decision."`
	Conditions                 []Condition           `json:"conditions,omitempty"`
	ProjectID                  string                `json:"project_id,omitempty" doc:"ID of the project in the OpenStack."`
	TemplateID                 string                `json:"template_id,omitempty" doc:"Template to create the cluster from: its own, or that of the project."`
	Labels                     map[string]string     `json:"labels,omitempty" doc:"Labels of the project and of the cluster; its own count where both have one."`
	Metrics                    []ClusterMetricStatus `json:"metrics,omitempty" doc:"Metrics of the project and of the cluster; its own count where both have one."`
}

// ObjectKind implements Object.
func (m *MagnumCluster) ObjectKind() Kind { return KindMagnumCluster }

// Meta implements Object.
func (m *MagnumCluster) Meta() *Metadata { return &m.Metadata }

// SpecPart implements Object.
func (m *MagnumCluster) SpecPart() any { return &m.Spec }

// StatusPart implements Object.
func (m *MagnumCluster) StatusPart() any { return &m.Status }

// Copy implements Object.
func (m *MagnumCluster) Copy() Object { d := *m; return &d }

// Secrets implements Object.
func (m *MagnumCluster) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (m *MagnumCluster) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (m *MagnumCluster) SetDefaults() {
	m.Kind = KindMagnumCluster
	m.Metadata.setDefaults(Namespaced)
	setDefaultWeights(m.Spec.Metrics)
}

// Validate implements Object.
func (m *MagnumCluster) Validate() FieldErrors {
	var errs FieldErrors
	m.Metadata.validate(Namespaced, &errs)
	validateConstraints(&errs, "spec", m.Spec.LabelConstraints, m.Spec.MetricConstraints)
	validateMetricRefs(&errs, m.Spec.Metrics)
	return errs
}
