package api

// LiveOpenStack is what an OpenStack answers when it is asked: its projects, and
// the templates that Magnum creates clusters from.
type LiveOpenStack struct {
	Projects  []LiveProject         `json:"projects" doc:"By name."`
	Templates []LiveClusterTemplate `json:"templates,omitempty" doc:"Magnum cluster templates by region and name; absent where the OpenStack has no Magnum."`
}

// LiveProject is a project of an OpenStack.
type LiveProject struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	DomainID    string   `json:"domain_id,omitempty"`
	ParentID    string   `json:"parent_id,omitempty"`
	Enabled     bool     `json:"enabled"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty" doc:"In alphabetical order."`
	Clusters    int64    `json:"clusters" doc:"Magnum clusters in the project."`
}

// LiveClusterTemplate is a template that Magnum creates clusters from.
type LiveClusterTemplate struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Region         string            `json:"region"`
	ProjectID      string            `json:"project_id,omitempty" doc:"Project that owns the template."`
	Public         bool              `json:"public"`
	COE            string            `json:"coe,omitempty" doc:"Container orchestration engine, such as kubernetes."`
	ImageID        string            `json:"image_id,omitempty"`
	FlavorID       string            `json:"flavor_id,omitempty" doc:"Flavor of the workers."`
	MasterFlavorID string            `json:"master_flavor_id,omitempty" doc:"Flavor of the control plane."`
	KeypairID      string            `json:"keypair_id,omitempty"`
	NetworkDriver  string            `json:"network_driver,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
}

// LiveOptions select the projects of an OpenStack.
type LiveOptions struct {
	// Tags are those that a project must have, all of them. Empty = any project.
	Tags []string
	// Disabled lists the projects that are disabled in place of the others.
	Disabled bool
}
