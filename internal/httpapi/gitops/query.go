package gitops

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// query is a validated api.DecisionQuery for one namespace.
type query struct {
	api.DecisionQuery
	namespace string
	selector  labels.Selector // nil if there is a name
}

// newQuery returns the query of a request for a namespace; api.FieldErrors if it is invalid.
func newQuery(namespace string, parameters api.DecisionQuery) (*query, error) {
	parameters.SetDefaults()
	errs := parameters.Validate()
	if parameters.Namespace != "" && parameters.Namespace != namespace {
		errs.Add("namespace", "%q must be absent, or %q as in the path: a request is answered for the namespace in its path only", parameters.Namespace, namespace)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	q := &query{DecisionQuery: parameters, namespace: namespace}
	if len(parameters.Selector) > 0 {
		q.selector = labels.Set(parameters.Selector).AsSelectorPreValidated()
	}
	return q, nil
}

// parseLabels parses "app=web,tier=front". The syntax has no other operators, as in Argo CD's input.
func parseLabels(text string) (map[string]string, error) {
	set := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := set[key]; !ok || key == "" || twice {
			return nil, api.FieldErrors{{Field: "selector", Message: fmt.Sprintf("%q must be labels of the form app=web,tier=front, each once", text)}}
		}
		set[key] = value
	}
	return set, nil
}

// objectKind returns the kind of the objects that the query names or selects.
func (q *query) objectKind() api.Kind {
	switch q.Kind {
	case api.DecisionOfWorkload:
		return api.KindWorkload
	case api.DecisionOfPolicy:
		return api.KindPropagationPolicy
	case api.DecisionOfPlacement:
	}
	return api.KindPlacement
}

// kinds returns the kinds of objects that an answer is made from, besides clusters.
func (q *query) kinds() []api.Kind {
	if q.Kind == api.DecisionOfPolicy {
		return []api.Kind{api.KindPropagationPolicy, api.KindWorkload}
	}
	return []api.Kind{q.objectKind()}
}

// named returns the key of the object that the query names.
func (q *query) named() api.Key {
	return api.Key{Kind: q.objectKind(), Namespace: q.namespace, Name: q.Name}
}

// String describes what the query names or selects, for messages.
func (q *query) String() string {
	if q.selector != nil {
		return fmt.Sprintf("the objects of kind %s in namespace %q with the labels %s", q.objectKind(), q.namespace, q.selector)
	}
	return q.named().String()
}
