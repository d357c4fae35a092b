package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DecisionKind is the kind of the objects whose decisions a GitOps controller asks for.
type DecisionKind string

// Values of DecisionKind.
const (
	DecisionOfPlacement DecisionKind = "placement"
	DecisionOfWorkload  DecisionKind = "workload"
	DecisionOfPolicy    DecisionKind = "policy"
)

// DecisionQuery says which decisions a GitOps controller asks for, and what of them. It is the
// 'input.parameters' of Argo CD's plugin generator.
type DecisionQuery struct {
	Kind            DecisionKind      `json:"kind,omitempty" enum:"placement,workload,policy" default:"placement" doc:"Kind of the objects. With 'policy', the decisions of the workloads in the namespace that follow a policy of the namespace."`
	Namespace       string            `json:"namespace,omitempty" doc:"Namespace of the objects. If set, it must be the one in the path."`
	Name            string            `json:"name,omitempty" doc:"Name of the object. Either this or 'selector' is required."`
	Selector        map[string]string `json:"selector,omitempty" doc:"Instead of a name: all objects that have these labels. If one of them cannot be answered, none is."`
	DecisionGroup   string            `json:"decision_group,omitempty" doc:"Only the clusters in this decision group of the placements."`
	IncludeEvicting *bool             `json:"include_evicting,omitempty" default:"true" doc:"If false, clusters that are being left are not in the answer, so that what runs there is deleted before its successor is healthy."`
	AllowEmpty      bool              `json:"allow_empty,omitempty" default:"false" doc:"If true, the answer has no clusters when none fits, so that everything is deleted. If false, this is an error, and everything stays."`
	ServerFrom      string            `json:"server_from,omitempty" doc:"Label or claim of the clusters that has the address of the API server, as 'labels.<name>' or 'claims.<name>'. It becomes 'server'."`
	ArgoCDNameFrom  string            `json:"argocd_name_from,omitempty" doc:"Label or claim of the clusters that has their name in Argo CD, as 'labels.<name>' or 'claims.<name>'. It becomes 'argocd_name'."`
}

// Validate returns all validation errors of the query. It expects SetDefaults to have run.
func (q *DecisionQuery) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkFields("", q)
	switch {
	case q.Name == "" && len(q.Selector) == 0:
		errs.Add("name", "is required, unless 'selector' is set")
	case q.Name != "" && len(q.Selector) > 0:
		errs.Add("selector", "must be absent, because 'name' is set")
	case q.Name != "":
		errs.check("name", checkName(q.Name))
	}
	if q.Namespace != "" {
		errs.check("namespace", checkName(q.Namespace))
	}
	for _, key := range slices.Sorted(maps.Keys(q.Selector)) {
		errs.check("selector["+quote(key)+"]", checkLabelKey(key))
	}
	if q.DecisionGroup != "" && q.Kind != DecisionOfPlacement {
		errs.Add("decision_group", "must be absent: only placements have decision groups")
	}
	if q.ServerFrom != "" {
		errs.check("server_from", checkClusterFact(q.ServerFrom))
	}
	if q.ArgoCDNameFrom != "" {
		errs.check("argocd_name_from", checkClusterFact(q.ArgoCDNameFrom))
	}
	return errs.inOrder(q)
}

// SetDefaults sets the defaults of absent fields.
func (q *DecisionQuery) SetDefaults() { setDefaults(q) }

// checkClusterFact checks for "labels.<name>" or "claims.<name>".
func checkClusterFact(text string) string {
	of, name, _ := strings.Cut(text, ".")
	if of != "labels" && of != "claims" || checkLabelKey(name) != "" {
		return fmt.Sprintf("%q must name a label or a claim, such as \"labels.argocd-name\" or \"claims.server\"", text)
	}
	return ""
}

// ClusterPhase says whether a cluster of a decision is being left.
type ClusterPhase string

// Values of ClusterPhase.
const (
	ClusterServing  ClusterPhase = "serving"
	ClusterEvicting ClusterPhase = "evicting"
)

// DecidedCluster is one cluster of a decision in the form that templates of GitOps controllers
// use: flat, and with names and identifiers as strings, because templates turn numbers into
// floating-point numbers.
type DecidedCluster struct {
	ID                string            `json:"id" doc:"Unique in the answer, and always the same for the cluster of a decision: '<decision_name>.<cluster>'."`
	Cluster           string            `json:"cluster" doc:"Name of the cluster."`
	State             ClusterPhase      `json:"state" enum:"serving,evicting" doc:"'evicting' if the decision is leaving the cluster: what runs there should stay as it is until its successor is healthy."`
	DecisionNamespace string            `json:"decision_namespace" doc:"Namespace of the placement or workload."`
	DecisionName      string            `json:"decision_name" doc:"Name of the placement or workload."`
	Revision          string            `json:"revision" doc:"Number of times that the decision has changed."`
	DecisionIndex     int64             `json:"decision_index" doc:"Position of the cluster in the decision, counted from 0: of a placement best first, of a workload by name; clusters that are being left come last."`
	DecisionGroup     string            `json:"decision_group" doc:"Name of the cluster's decision group. Empty if it has none."`
	GroupIndex        *int64            `json:"decision_group_index,omitempty" doc:"Position of the cluster's decision group, counted from 0. Absent if there are none."`
	Rank              *int64            `json:"rank,omitempty" doc:"For a placement: rank of the cluster, where 1 is best."`
	Score             *float64          `json:"score,omitempty" doc:"For a placement: score when the decision was made."`
	Replicas          *int64            `json:"replicas,omitempty" doc:"For a workload with replicas: those on the cluster."`
	OnDemand          *int64            `json:"on_demand,omitempty" doc:"For a workload with a distribution: replicas that go to on-demand nodes."`
	Spot              *int64            `json:"spot,omitempty" doc:"For a workload with a distribution: replicas that go to spot nodes."`
	Region            string            `json:"region" doc:"Region of the cluster."`
	Zones             []string          `json:"zones" doc:"Zones of the cluster."`
	Provider          string            `json:"provider" doc:"Provider of the cluster's machines. In templates of Flux, 'provider' is Flux's own: use 'cloud_provider'."`
	CloudProvider     string            `json:"cloud_provider" doc:"The same as 'provider'."`
	Labels            map[string]string `json:"labels" doc:"Labels of the cluster, also those that it inherits."`
	Claims            map[string]string `json:"claims" doc:"Claims of the cluster."`
	Server            string            `json:"server,omitempty" doc:"Value of the label or claim in 'server_from'."`
	ArgoCDName        string            `json:"argocd_name,omitempty" doc:"Value of the label or claim in 'argocd_name_from'."`
}

// PluginRequest is the request of Argo CD's plugin generator. Argo CD may add fields.
type PluginRequest struct {
	ApplicationSetName string      `json:"applicationSetName,omitempty" doc:"Name of the ApplicationSet. Not used."`
	Input              PluginInput `json:"input" doc:"What the ApplicationSet has as 'plugin.input'."`
}

// PluginInput is the input of a plugin generator.
type PluginInput struct {
	Parameters DecisionQuery `json:"parameters" doc:"Which decisions, and what of them."`
}

// PluginAnswer is the answer to Argo CD's plugin generator.
type PluginAnswer struct {
	Output PluginOutput `json:"output" doc:"Output of the plugin."`
}

// PluginOutput is the output of a plugin generator.
type PluginOutput struct {
	Parameters []DecidedCluster `json:"parameters" doc:"One set of parameters for each cluster, sorted by 'id'."`
}

// FluxInputs is the answer to flux-operator's ResourceSetInputProvider of type ExternalService.
type FluxInputs struct {
	Inputs []DecidedCluster `json:"inputs" doc:"One set of inputs for each cluster, sorted by 'id'."`
}
