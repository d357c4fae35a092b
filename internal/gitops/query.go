package gitops

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Paths of the answers.
const (
	ArgoCDPath = "/integrations/argocd/{namespace}/api/v1/getparams.execute"
	FluxPath   = "/integrations/flux/{namespace}/inputs"
)

// Query is a validated api.DecisionQuery for one namespace.
type Query struct {
	kind api.DecisionKind
	// namespace is "" if a controller has it where nobody looked.
	namespace, name string
	// selector is nil if there is a name.
	selector                     labels.Selector
	group                        string
	includeEvicting, allowEmpty  bool
	serverFrom, argocdFrom       api.ClusterFact
	serverFromText, argoFromText string
}

// NewQuery returns the query of a request for a namespace; api.FieldErrors if it is invalid.
func NewQuery(namespace string, q api.DecisionQuery) (*Query, error) {
	q.SetDefaults()
	errs := q.Validate()
	if q.Namespace != "" && q.Namespace != namespace {
		errs.Add("namespace", "%q must be absent, or %q as in the path: a request is answered for the namespace in its path only", q.Namespace, namespace)
	}
	query := &Query{
		kind: q.Kind, namespace: namespace, name: q.Name, group: q.DecisionGroup,
		includeEvicting: q.IncludeEvicting == nil || *q.IncludeEvicting, allowEmpty: q.AllowEmpty,
		serverFromText: q.ServerFrom, argoFromText: q.ArgoCDNameFrom,
	}
	query.serverFrom, _ = api.ParseClusterFact(q.ServerFrom)
	query.argocdFrom, _ = api.ParseClusterFact(q.ArgoCDNameFrom)
	if len(q.Selector) > 0 {
		query.selector = labels.Set(q.Selector).AsSelectorPreValidated()
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return query, nil
}

// FluxQuery are the parameters of FluxPath. It is the same query as Argo CD's, in a URL.
type FluxQuery struct {
	Kind            string `query:"kind" enum:"placement,workload,policy" default:"placement" doc:"Kind of the objects. With policy, the decisions of the workloads in the namespace that follow a policy of the namespace."`
	Name            string `query:"name" doc:"Name of the object. Either this or selector is required."`
	Selector        string `query:"selector" doc:"Instead of a name: all objects that have these labels, as app=web,tier=front. If one of them cannot be answered, none is."`
	DecisionGroup   string `query:"decision_group" doc:"Only the clusters in this decision group of the placements."`
	IncludeEvicting bool   `query:"include_evicting" default:"true" doc:"If false, clusters that are being left are not in the answer, so that what runs there is deleted before its successor is healthy."`
	AllowEmpty      bool   `query:"allow_empty" doc:"If true, the answer has no inputs when no cluster fits, so that everything is deleted. If false, this is an error, and everything stays."`
	ServerFrom      string `query:"server_from" doc:"Label or claim of the clusters that has the address of the API server, as claims.server or labels.server. It becomes server."`
	Limit           int    `query:"limit" minimum:"1" maximum:"10000" default:"100" doc:"spec.filter.limit of the ResourceSetInputProvider, which ignores further inputs, so that what they made is deleted. If there are more clusters, this is an error."`
}

// Query returns the query for a namespace; api.FieldErrors if it is invalid.
func (f *FluxQuery) Query(namespace string) (*Query, error) {
	q := api.DecisionQuery{
		Kind: api.DecisionKind(f.Kind), Name: f.Name, DecisionGroup: f.DecisionGroup,
		IncludeEvicting: &f.IncludeEvicting, AllowEmpty: f.AllowEmpty, ServerFrom: f.ServerFrom,
	}
	if f.Selector != "" {
		var err error
		if q.Selector, err = parseLabels(f.Selector); err != nil {
			return nil, err
		}
	}
	return NewQuery(namespace, q)
}

// parseLabels parses "app=web,tier=front". The syntax has no other operators, as in Argo CD's input.
func parseLabels(text string) (map[string]string, error) {
	set := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := set[key]; !ok || key == "" || twice {
			return nil, api.FieldErrors{{Field: "selector", Message: fmt.Sprintf("%q must be labels of the form app=web,tier=front, each once", text)}}
		}
		set[key] = strings.TrimPrefix(value, "=")
	}
	return set, nil
}

// OfURL returns the query in the URL of a ResourceSetInputProvider. ok is false if the URL is not of
// FluxPath, or the query is invalid.
func OfURL(text string) (query *Query, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, false
	}
	before, after, _ := strings.Cut(FluxPath, "{namespace}")
	_, rest, found := strings.Cut(u.Path, before) // behind a proxy, the path may begin with something else
	namespace, isPath := strings.CutSuffix(rest, after)
	if !found || !isPath || namespace == "" || strings.Contains(namespace, "/") {
		return nil, false
	}
	values := u.Query()
	f := FluxQuery{Kind: values.Get("kind"), Name: values.Get("name"), Selector: values.Get("selector"), IncludeEvicting: true}
	if given := values.Get("include_evicting"); given != "" {
		if f.IncludeEvicting, err = strconv.ParseBool(given); err != nil {
			return nil, false
		}
	}
	query, err = f.Query(namespace)
	return query, err == nil
}

// Concerns reports whether an object, in its present or an earlier version, is part of the answer.
func (q *Query) Concerns(object api.Object) bool {
	meta := object.Meta()
	if q.namespace != "" && meta.Namespace != q.namespace {
		return false
	}
	switch o := object.(type) {
	case *api.Placement:
		return q.kind == api.DecisionOfPlacement && q.selects(meta)
	case *api.Workload:
		switch q.kind {
		case api.DecisionOfWorkload:
			return q.selects(meta)
		case api.DecisionOfPolicy:
			policy := api.PolicyKey(o.Status.Policy)
			// Whether a selector selects the policy is not known here: asking once too often does no harm.
			return policy.Namespace == meta.Namespace && (q.selector != nil || policy.Name == q.name)
		case api.DecisionOfPlacement:
		}
	}
	return false
}

// Named returns the object that the query names. ok is false if it selects objects by their labels.
func (q *Query) Named() (key api.Key, ok bool) {
	return api.Key{Kind: q.objectKind(), Namespace: q.namespace, Name: q.name}, q.selector == nil
}

// selects reports whether the query names or selects an object of its namespace.
func (q *Query) selects(meta *api.Metadata) bool {
	if q.selector != nil {
		return q.selector.Matches(labels.Set(meta.Labels))
	}
	return meta.Name == q.name
}

// objectKind returns the kind of the objects that the query names or selects.
func (q *Query) objectKind() api.Kind {
	switch q.kind {
	case api.DecisionOfWorkload:
		return api.KindWorkload
	case api.DecisionOfPolicy:
		return api.KindPropagationPolicy
	case api.DecisionOfPlacement:
	}
	return api.KindPlacement
}

// Kinds returns the kinds of objects that an answer is made from, besides clusters.
func (q *Query) Kinds() []api.Kind {
	if q.kind == api.DecisionOfPolicy {
		return []api.Kind{api.KindPropagationPolicy, api.KindWorkload}
	}
	return []api.Kind{q.objectKind()}
}

// Namespace returns the namespace of the objects.
func (q *Query) Namespace() string { return q.namespace }

// String describes what the query names or selects, for messages.
func (q *Query) String() string {
	if q.selector != nil {
		return fmt.Sprintf("the objects of kind %s in namespace %q with the labels %s", q.objectKind(), q.namespace, q.selector)
	}
	key, _ := q.Named()
	return key.String()
}
