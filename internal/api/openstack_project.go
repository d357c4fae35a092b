package api

// OpenStackProject is an OpenStack project that Magnum clusters are created in.
type OpenStackProject struct {
	Kind     Kind                   `json:"kind" enum:"openstack_project"`
	Metadata Metadata               `json:"metadata"`
	Spec     OpenStackProjectSpec   `json:"spec"`
	Status   OpenStackProjectStatus `json:"status,omitzero"`
}

// OpenStackProjectSpec is what the owner of a project declares.
type OpenStackProjectSpec struct {
	Metrics    []MetricRef    `json:"metrics,omitempty" doc:"Metrics that rate the project."`
	ProjectID  string         `json:"project_id,omitempty" doc:"ID of the project in OpenStack."`
	UserID     string         `json:"user_id,omitempty" doc:"ID of the user who creates clusters in the project."`
	TemplateID string         `json:"template_id,omitempty" doc:"ID of the Magnum cluster template that clusters are created from."`
	OpenStack  *OpenStackSpec `json:"openstack,omitempty" doc:"Access to the OpenStack API, for the tool that creates the clusters."`
}

// OpenStackProjectStatus is what the server knows about a project.
type OpenStackProjectStatus struct {
	ObservedGeneration int64                 `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	Conditions         []Condition           `json:"conditions,omitempty" doc:"Conditions that the server observed."`
	Metrics            []ClusterMetricStatus `json:"metrics,omitempty" doc:"Current values of the project's metrics."`
}

// ObjectKind implements Object.
func (p *OpenStackProject) ObjectKind() Kind { return KindOpenStackProject }

// Meta implements Object.
func (p *OpenStackProject) Meta() *Metadata { return &p.Metadata }

// SpecPart implements Object.
func (p *OpenStackProject) SpecPart() any { return &p.Spec }

// StatusPart implements Object.
func (p *OpenStackProject) StatusPart() any { return &p.Status }

// Copy implements Object.
func (p *OpenStackProject) Copy() Object { d := *p; return &d }

// Secrets implements Object.
func (p *OpenStackProject) Secrets() map[string]Secret {
	out := map[string]Secret{}
	p.Spec.OpenStack.secrets(out)
	return out
}

// SetSecret implements Object.
func (p *OpenStackProject) SetSecret(field string, secret Secret) {
	p.Spec.OpenStack = p.Spec.OpenStack.withSecret(field, secret)
}

// receiver implements secretReceiver.
func (p *OpenStackProject) receiver(field string) receiver { return p.Spec.OpenStack.receiver(field) }

// SetDefaults implements Object.
func (p *OpenStackProject) SetDefaults() {
	p.Kind = KindOpenStackProject
	p.Metadata.setDefaults(Namespaced)
	setDefaults(&p.Spec)
}

// Validate implements Object.
func (p *OpenStackProject) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(p, Namespaced)
	validateMetricRefs(&errs, p.Spec.Metrics)
	p.Spec.OpenStack.validate(&errs)
	return errs.inOrder(p)
}
