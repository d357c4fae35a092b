package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// History is the part of *history.Log that the API uses.
type History interface {
	Read(query history.Query) history.Page
	store.History
	// After returns the first revision that was decided after a time, 0 if none was. It is false if the history does not
	// reach back that far.
	After(at time.Time) (revision int64, known bool)
	// Part returns lines for another server.
	Part(after, until int64) []byte
}

type historyInput struct {
	Kind      string `query:"kind" doc:"Only decisions of objects of this kind: placement or workload."`
	Namespace string `query:"namespace" doc:"Only decisions of objects in this namespace."`
	Name      string `query:"name" doc:"Only decisions of objects with this name."`
	Cluster   string `query:"cluster" doc:"Only decisions that moved to or from this cluster."`
	Since     string `query:"since" doc:"Only decisions made at this time (RFC 3339) or later."`
	Until     string `query:"until" doc:"Only decisions made before this time (RFC 3339)."`
	Limit     int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Largest number of entries to return. A page may have fewer, and is not the last one as long as it has 'continue'."`
	Continue  string `query:"continue" doc:"The continue token of the previous page, with the same other parameters."`
}

type historyOutput struct {
	Body *api.HistoryPage
}

// histories shows what was decided, when and why.
type histories struct {
	api    *operation.API
	codec  Codec
	log    History // nil = none is kept
	rights auth.Rights
}

func (h *histories) routes() {
	operation.Register(h.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "list-history", Method: http.MethodGet, Path: "/v1/history", Tags: []string{"decision"},
		Summary:     "List the changes of decisions, the newest first",
		Description: "One entry for each change of the decision of a placement or workload, with what made it change. What the token may not read of that is left out. A server has a history of its own, with the same entries as that of every other.",
		Errors:      []int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity},
	}), h.list)
}

func (h *histories) list(ctx context.Context, in *historyInput) (*historyOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	query, err := h.query(who, in)
	if err != nil {
		return nil, err
	}
	if h.log == nil {
		return nil, errNoHistory()
	}
	read := h.log.Read(query)
	page := &api.HistoryPage{Items: read.Items, Gaps: read.Gaps}
	for i := range page.Items {
		e := &page.Items[i]
		if shown := h.rights.DisclosedCause(who, e.Object, e.Cause); shown != e.Cause {
			e.Cause, e.Actor = shown, nil
		}
		if !who.SeesEvery(api.KindMetric) || !who.SeesEvery(api.KindCluster) {
			e.Margin = nil // which metrics the clusters listed then is not known
		}
	}
	if !read.Since.IsZero() {
		page.Since = &read.Since
	}
	if read.Next != (history.Cursor{}) {
		page.Continue = read.Next.String()
	}
	if !who.ReadsAll() {
		page.Gaps = withoutReasons(page.Gaps)
	}
	return &historyOutput{page}, nil
}

func errNoHistory() *problem.Problem {
	return problem.New(api.ProblemNotFound, "this server keeps no history: it has no directory for it (history-dir), or history-retention is 0")
}

// query returns what is asked for, as far as it may be read.
func (h *histories) query(who auth.Identity, in *historyInput) (query history.Query, err error) {
	query = history.Query{Namespace: in.Namespace, Name: in.Name, Cluster: in.Cluster, Limit: in.Limit}
	if query.Kinds, err = decidedKinds(h.rights, who, "kind", in.Kind, in.Namespace); err != nil {
		return query, err
	}
	for _, field := range []struct {
		name, text string
		to         *time.Time
	}{{"since", in.Since, &query.Since}, {"until", in.Until, &query.Until}} {
		if field.text == "" {
			continue
		}
		if *field.to, err = time.Parse(time.RFC3339, field.text); err != nil {
			return query, problem.Invalid(field.name, "%q must be a time such as 2026-03-01T12:00:00Z", field.text)
		}
	}
	if in.Since != "" && in.Until != "" && !query.Since.Before(query.Until) {
		return query, problem.Invalid("until", "%s must be after since, which is %s", in.Until, in.Since)
	}
	if in.Continue != "" {
		var ok bool
		if query.Before, ok = history.ParseCursor(in.Continue); !ok {
			return query, problem.New(api.ProblemBadContinue, "continue is not a token that this server has returned")
		}
	}
	if !who.ReadsAll() {
		query.Visible = func(key api.Key) bool { return who.Reads(key.Kind, auth.OwnersIn(key.Namespace)...) }
	}
	return query, nil
}

// withoutReasons returns gaps without what they say about objects and files.
func withoutReasons(gaps []api.HistoryGap) []api.HistoryGap {
	for i := range gaps {
		gaps[i].Reason = "changes may be missing"
	}
	return gaps
}
