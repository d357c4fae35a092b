package refresh

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
)

// decisionsAnnotation names decisions that an object depends on, as kind/namespace/name separated by
// commas, where its spec does not show them: an ApplicationSet may have templates in the input of
// its generator.
const decisionsAnnotation = "scheduler/decisions"

// controller is what makes something of the answers.
type controller string

const (
	argocd controller = "argocd"
	flux   controller = "flux"
)

// resources are the objects of the controllers that ask for decisions.
var resources = map[controller]schema.GroupVersionResource{
	argocd: {Group: "argoproj.io", Version: "v1alpha1", Resource: "applicationsets"},
	flux:   {Group: "fluxcd.controlplane.io", Version: "v1", Resource: "resourcesetinputproviders"},
}

// name identifies an object that asks for decisions.
type name struct {
	controller      controller
	namespace, name string
}

// String returns the name for messages.
func (n name) String() string {
	return resources[n.controller].Resource + " " + n.namespace + "/" + n.name
}

// asking is what is kept of an object: what it asks for.
type asking struct {
	name
	// queries are what it asks for; text is the same for the same queries.
	queries []*gitops.Query
	text    string
}

func sameAsking(a, b asking) bool { return a.name == b.name && a.text == b.text }

// tableOf returns an empty table of the objects of a controller that ask for decisions.
func tableOf(c controller) *feed.Table[asking] {
	return feed.NewTable(func(object runtime.Object) (asking, bool) {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return asking{}, false
		}
		a := asking{name: name{c, o.GetNamespace(), o.GetName()}}
		switch c {
		case argocd:
			a.addGenerators(o.Object)
		case flux:
			a.addURL(o.Object)
		}
		a.addNamed(o.GetAnnotations()[decisionsAnnotation])
		return a, len(a.queries) > 0
	}, sameAsking)
}

func (a *asking) add(query *gitops.Query, text string) {
	a.queries = append(a.queries, query)
	a.text += text + "\n"
}

// addURL adds the query of a ResourceSetInputProvider.
func (a *asking) addURL(object map[string]any) {
	kind, _, _ := unstructured.NestedString(object, "spec", "type")
	url, _, _ := unstructured.NestedString(object, "spec", "url")
	if query, ok := gitops.OfURL(url); ok && kind == "ExternalService" {
		a.add(query, url)
	}
}

// addGenerators adds the queries of the plugin generators of an ApplicationSet. Generators may be in
// others, such as a matrix.
func (a *asking) addGenerators(object map[string]any) {
	spec, _, _ := unstructured.NestedMap(object, "spec")
	a.addPlugins(spec, maxNesting)
}

// maxNesting is more than generators can be nested.
const maxNesting = 8

func (a *asking) addPlugins(in map[string]any, depth int) {
	generators, _ := in["generators"].([]any)
	for _, one := range generators {
		generator, ok := one.(map[string]any)
		if !ok || depth == 0 {
			continue
		}
		if parameters, ok, _ := unstructured.NestedMap(generator, "plugin", "input", "parameters"); ok {
			a.addParameters(parameters)
		}
		for _, combined := range []string{"matrix", "merge"} {
			if nested, ok := generator[combined].(map[string]any); ok {
				a.addPlugins(nested, depth-1)
			}
		}
	}
}

// addParameters adds the query of a plugin generator, if it is one: other plugins have other
// parameters. Without a namespace in it, it may be of any: that is in a ConfigMap.
func (a *asking) addParameters(parameters map[string]any) {
	text, err := json.Marshal(parameters)
	if err != nil {
		return
	}
	var q api.DecisionQuery
	if api.DecodeInto(text, &q) != nil {
		return
	}
	if query, err := gitops.NewQuery(q.Namespace, q); err == nil {
		a.add(query, string(text))
	}
}

// addNamed adds the decisions that an annotation names.
func (a *asking) addNamed(text string) {
	for one := range strings.SplitSeq(text, ",") {
		parts := strings.Split(strings.TrimSpace(one), "/")
		if len(parts) != 3 || slices.Contains(parts, "") {
			continue
		}
		q := api.DecisionQuery{Kind: api.DecisionKind(parts[0]), Namespace: parts[1], Name: parts[2]}
		if query, err := gitops.NewQuery(q.Namespace, q); err == nil {
			a.add(query, one)
		}
	}
}
