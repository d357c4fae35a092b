package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/decisiontable"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

type decisionsInput struct {
	Kinds         string `query:"kinds" doc:"Kinds to list, separated by commas: placement,workload. If omitted, both."`
	Namespace     string `query:"namespace" doc:"Only decisions in this namespace."`
	Search        string `query:"search" maxLength:"253" doc:"Only decisions whose namespace/name contains this text."`
	Cluster       string `query:"cluster" doc:"Only decisions that chose this cluster."`
	Satisfied     string `query:"satisfied" enum:"True,False,Unknown" doc:"Only decisions that are, or are not, satisfied."`
	LabelSelector string `query:"label_selector" doc:"Only objects whose labels match, in Kubernetes syntax."`
	Sort          string `query:"sort" enum:"name,-name,scheduled_at,-scheduled_at,clusters,-clusters,satisfied,-satisfied" default:"name" doc:"Order: by namespace and name, time of the last change, number of clusters, or unsatisfied ones first; '-' reverses it."`
	Offset        int    `query:"offset" minimum:"0" doc:"Number of rows to leave out at the beginning."`
	Limit         int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Largest number of rows to return."`
	CountBy       string `query:"count_by" maxLength:"400" doc:"Count the decisions that match by 'namespace', 'kind', 'cluster' (one of several clusters counts in each), or 'label:KEY'."`
}

type decisionsOutput struct {
	Body *api.DecisionList
}

// decisionRows lists decisions for people: sorted, filtered, and any part of them at once. Every
// response is of the newest revision, unlike the pages of a list.
type decisionRows struct {
	api    *operation.API
	index  *decisiontable.Index
	rights auth.Rights
	view   *view
}

// maxDecisionGroups is the number of groups in a response.
const maxDecisionGroups = 500

func (d *decisionRows) routes() {
	operation.Register(d.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "list-decisions", Method: http.MethodGet, Path: "/v1/decisions", Tags: []string{"decision"},
		Summary:     "List the decisions of placements and workloads, in any order",
		Description: "One short row for each placement and workload, sorted and filtered by the server, for tables that people scroll. The lists of the kinds have the objects themselves.",
		Errors:      []int{http.StatusUnprocessableEntity},
	}), d.list)
}

func (d *decisionRows) list(ctx context.Context, in *decisionsInput) (*decisionsOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	selector, err := parseSelector(in.LabelSelector)
	if err != nil {
		return nil, err
	}
	kinds, err := decidedKinds(d.rights, who, "kinds", in.Kinds, in.Namespace)
	if err != nil {
		return nil, err
	}
	var grouping decisiontable.Grouping
	if in.CountBy != "" {
		if grouping, err = decisiontable.ParseGrouping(in.CountBy); err != nil {
			return nil, problem.Invalid("count_by", "%s", err)
		}
	}
	table := d.index.Table()
	selection := table.Select(decisiontable.Query{
		Kinds: kinds, Namespace: in.Namespace, Search: in.Search, Cluster: in.Cluster, Satisfied: api.ConditionStatus(in.Satisfied), Labels: selector,
		Readable: func(kind api.Kind, namespace string) bool { return who.Reads(kind, auth.OwnersIn(namespace)...) },
	})
	list := &api.DecisionList{
		Items: []api.DecisionSummary{}, Total: selection.Total(), Unsatisfied: selection.Unsatisfied,
		ResourceVersion: strconv.FormatInt(table.Revision(), 10),
	}
	if in.CountBy != "" {
		list.Groups, list.GroupsLeftOut = selection.Count(grouping, maxDecisionGroups)
	}
	from := min(in.Offset, list.Total)
	for _, entry := range selection.Part(in.Sort, from, min(from+in.Limit, list.Total)) {
		if row, ok := api.Summarize(d.view.shown(who, entry.Object)); ok {
			list.Items = append(list.Items, row)
		}
	}
	return &decisionsOutput{list}, nil
}

// decidedKinds returns the kinds to list, of which a parameter may name some. Who names one must be
// allowed to read it; otherwise the list has what may be read.
func decidedKinds(rights auth.Rights, who auth.Identity, parameter, names, namespace string) ([]api.Kind, error) {
	var kinds []api.Kind
	var refused error
	for _, kind := range api.HistoryKinds {
		if err := rights.MayReadKey(who, api.Key{Kind: kind, Namespace: namespace}); err != nil {
			refused = err
		} else {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case names != "":
	case namespace != "" && len(kinds) == 0:
		return nil, refused
	default:
		return kinds, nil
	}
	var named []api.Kind
	for name := range strings.SplitSeq(names, ",") {
		kind := api.Kind(strings.TrimSpace(name))
		if !slices.Contains(api.HistoryKinds, kind) {
			return nil, problem.Invalid(parameter, "%q is not a kind in this list: it has placement and workload", string(kind))
		}
		if !slices.Contains(kinds, kind) {
			return nil, refused
		}
		named = append(named, kind)
	}
	return named, nil
}
