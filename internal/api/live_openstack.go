package api

// LiveOpenStack is read from OpenStack on request: its projects, and the templates that Magnum
// creates clusters from.
type LiveOpenStack struct {
	Projects  []LiveProject         `json:"projects" doc:"Projects, sorted by name."`
	Templates []LiveClusterTemplate `json:"templates,omitempty" doc:"Magnum cluster templates, sorted by region and name. Absent if the cloud has no Magnum."`
}

// LiveProject is an OpenStack project.
type LiveProject struct {
	ID          string   `json:"id" doc:"ID of the project."`
	Name        string   `json:"name" doc:"Name of the project."`
	DomainID    string   `json:"domain_id,omitempty" doc:"ID of the project's domain."`
	ParentID    string   `json:"parent_id,omitempty" doc:"ID of the parent project or domain."`
	Enabled     bool     `json:"enabled" doc:"Whether the project may be used."`
	Description string   `json:"description,omitempty" doc:"Description of the project."`
	Tags        []string `json:"tags,omitempty" doc:"Tags in alphabetical order."`
	Clusters    int64    `json:"clusters" doc:"Number of Magnum clusters in the project."`
}

// LiveClusterTemplate is a template that Magnum creates clusters from.
type LiveClusterTemplate struct {
	ID             string            `json:"id" doc:"ID of the template."`
	Name           string            `json:"name" doc:"Name of the template."`
	Region         string            `json:"region" doc:"Region of the Magnum service that has the template."`
	ProjectID      string            `json:"project_id,omitempty" doc:"Project that owns the template."`
	Public         bool              `json:"public" doc:"Whether every project may use the template."`
	COE            string            `json:"coe,omitempty" doc:"Container orchestration engine, such as 'kubernetes'."`
	ImageID        string            `json:"image_id,omitempty" doc:"Image of the machines."`
	FlavorID       string            `json:"flavor_id,omitempty" doc:"Flavor of the worker nodes."`
	MasterFlavorID string            `json:"master_flavor_id,omitempty" doc:"Flavor of the control plane nodes."`
	KeypairID      string            `json:"keypair_id,omitempty" doc:"SSH key pair of the machines."`
	NetworkDriver  string            `json:"network_driver,omitempty" doc:"Network driver of the clusters, such as 'calico'."`
	Labels         map[string]string `json:"labels,omitempty" doc:"Labels of the template, which configure its clusters."`
}

// LiveOptions select OpenStack projects.
type LiveOptions struct {
	// Tags are required, all of them. If empty, any project matches.
	Tags []string
	// Disabled lists only the disabled projects; otherwise only the enabled ones are listed.
	Disabled bool
}
