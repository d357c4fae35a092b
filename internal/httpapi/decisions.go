package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
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
	fleet  *fleet.Fleet
	rights auth.Rights
	view   *view
}

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
	groups, err := newDecisionGroups(in.CountBy)
	if err != nil {
		return nil, err
	}
	snapshot := d.fleet.Snapshot()
	list := &api.DecisionList{Items: []api.DecisionSummary{}, ResourceVersion: strconv.FormatInt(snapshot.Revision(), 10)}
	var matching []*fleet.Entry
	for _, kind := range kinds {
		of := make([]*fleet.Entry, 0, snapshot.Len(kind))
		var seen api.Key // whether its namespace may be read is known
		readable := false
		for entry := range snapshot.All(kind, in.Namespace) {
			key := entry.Key()
			if seen.Namespace != key.Namespace || seen.Name == "" {
				readable = d.rights.Reads(who, entry.Object)
			}
			if seen = key; !readable || snapshot.Damaged(key) != nil || !in.matches(key, entry.Object, selector) {
				continue
			}
			satisfied := isSatisfied(entry.Object) != api.ConditionFalse
			if !satisfied {
				list.Unsatisfied++
			}
			groups.add(entry.Object, satisfied)
			of = append(of, entry)
		}
		matching = merged(matching, of)
	}
	list.Total = len(matching)
	list.Groups, list.GroupsLeftOut = groups.counts()
	from := min(in.Offset, len(matching))
	for _, entry := range sortedPart(matching, in.Sort, from, min(from+in.Limit, len(matching))) {
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

// matches reports whether an object belongs to the list, apart from rights.
func (in *decisionsInput) matches(key api.Key, object api.Object, selector labels.Selector) bool {
	switch {
	case in.Search != "" && !found(key, in.Search):
	case in.Satisfied != "" && string(isSatisfied(object)) != in.Satisfied:
	case in.Cluster != "" && !chose(object, in.Cluster):
	case !selector.Empty() && !selector.Matches(labels.Set(object.Meta().Labels)):
	default:
		return true
	}
	return false
}

// found reports whether namespace/name contains a text.
func found(key api.Key, text string) bool {
	return strings.Contains(key.Name, text) || strings.Contains(key.Namespace, text) ||
		strings.Contains(text, "/") && strings.Contains(key.Namespace+"/"+key.Name, text)
}

// chose reports whether a decision contains a cluster.
func chose(object api.Object, cluster string) bool {
	switch o := object.(type) {
	case *api.Placement:
		return slices.Contains(o.Status.Clusters, cluster)
	case *api.Workload:
		return o.Status.RunsOn(cluster)
	}
	return false
}

func isSatisfied(object api.Object) api.ConditionStatus {
	if c := api.Satisfaction(object); c != nil {
		return c.Status
	}
	return api.ConditionUnknown
}

// scheduledAt is when a decision last changed, 0 if it has never been made.
func scheduledAt(object api.Object) int64 {
	switch o := object.(type) {
	case *api.Placement:
		if o.Status.ScheduledAt != nil {
			return o.Status.ScheduledAt.UnixNano()
		}
	case *api.Workload:
		if o.Status.ScheduledAt != nil {
			return o.Status.ScheduledAt.UnixNano()
		}
	}
	return 0
}

func clusterCount(object api.Object) int64 {
	switch o := object.(type) {
	case *api.Placement:
		return int64(len(o.Status.Clusters))
	case *api.Workload:
		return int64(len(o.Status.Clusters))
	}
	return 0
}

// satisfaction orders unsatisfied decisions before undecided ones, and these before satisfied ones.
func satisfaction(object api.Object) int64 {
	return int64(slices.Index([]api.ConditionStatus{api.ConditionFalse, api.ConditionUnknown, api.ConditionTrue}, isSatisfied(object)))
}
