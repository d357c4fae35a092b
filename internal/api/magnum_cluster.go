package api

import (
	"time"
)

// MagnumCluster is a cluster that OpenStack Magnum creates. The status names its project.
type MagnumCluster struct {
	Kind     Kind                `json:"kind" enum:"magnum_cluster"`
	Metadata Metadata            `json:"metadata"`
	Spec     MagnumClusterSpec   `json:"spec"`
	Status   MagnumClusterStatus `json:"status,omitzero"`
}

// MagnumClusterSpec selects the projects that fit.
type MagnumClusterSpec struct {
	LabelConstraints  []string    `json:"label_constraints,omitempty" doc:"Constraints on the project's labels, all of which must hold: 'location is DE', 'tier not in (test)'."`
	MetricConstraints []string    `json:"metric_constraints,omitempty" doc:"Constraints on the project's metrics, all of which must hold: 'price < 5'. A metric without a value satisfies none."`
	Metrics           []MetricRef `json:"metrics,omitempty" doc:"Metrics of the cluster itself. Together with those of its project, they rate it."`
	TemplateID        string      `json:"template_id,omitempty" doc:"ID of the Magnum cluster template. If omitted, the project's template is used."`
}

// MagnumClusterStatus is the decision.
type MagnumClusterStatus struct {
	ObservedGeneration         int64                 `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	ObservedRescheduleRequests int64                 `json:"observed_reschedule_requests,omitempty" doc:"Number of requests for a fresh decision that were answered."`
	Project                    string                `json:"project,omitempty" ref:"openstack_project,own,optional" doc:"Name of the chosen project, in the same namespace."`
	Score                      *float64              `json:"score,omitempty" doc:"Score of the project when it was chosen."`
	ScheduledAt                *time.Time            `json:"scheduled_at,omitempty" doc:"When the project was chosen."`
	DecisionRevision           int64                 `json:"decision_revision,omitempty" doc:"Number of times that the decision has changed."`
	Conditions                 []Condition           `json:"conditions,omitempty" doc:"Conditions that the server observed."`
	ProjectID                  string                `json:"project_id,omitempty" doc:"ID of the project in OpenStack."`
	TemplateID                 string                `json:"template_id,omitempty" doc:"Template to create the cluster from: the cluster's own, or that of the project."`
	Labels                     map[string]string     `json:"labels,omitempty" doc:"Labels of the project and of the cluster. The cluster's own win."`
	Metrics                    []ClusterMetricStatus `json:"metrics,omitempty" doc:"Metrics of the project and of the cluster. The cluster's own win."`
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
	setDefaults(&m.Spec)
}

// Validate implements Object.
func (m *MagnumCluster) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(m, Namespaced)
	validateConstraints(&errs, "spec", m.Spec.LabelConstraints, m.Spec.MetricConstraints)
	validateMetricRefs(&errs, m.Spec.Metrics)
	return errs.inOrder(m)
}
