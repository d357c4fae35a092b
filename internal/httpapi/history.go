package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// History is the part of *history.Log that the API needs.
type History interface {
	// Enabled reports whether decisions are recorded.
	Enabled() bool
	// Read returns a page of records.
	Read(ctx context.Context, query history.Query) (history.Page, error)
	// AtTime returns the revision of the last record at or before a time.
	AtTime(ctx context.Context, at time.Time) (int64, error)
	// Past returns the fleet after the pass that made a decision.
	Past(ctx context.Context, revision int64, codec history.Decoder) (*history.Past, error)
}

type historyInput struct {
	Kind      string `query:"kind" doc:"Only decisions of objects of this kind: placement, workload, cluster or magnum_cluster."`
	Namespace string `query:"namespace" doc:"Only decisions of objects in this namespace."`
	Name      string `query:"name" doc:"Only decisions of objects with this name."`
	Cluster   string `query:"cluster" doc:"Only decisions that moved to or from this cluster."`
	Cause     string `query:"cause" doc:"Only decisions with this type of cause, such as metric."`
	Since     string `query:"since" doc:"Only decisions made at this time (RFC 3339) or later."`
	Until     string `query:"until" doc:"Only decisions made before this time (RFC 3339)."`
	Order     string `query:"order" enum:"newest,oldest" default:"newest" doc:"Order: the newest first, or the oldest."`
	Limit     int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Largest number of entries to return."`
	Continue  string `query:"continue" doc:"The continue token of the previous page, with the same other parameters. 410 means that what follows is no longer kept."`
}

type historyOutput struct {
	Body *api.HistoryPage
}

// histories shows what was decided, when and why.
type histories struct {
	api    *operation.API
	log    History // nil = there is none
	fleet  *fleet.Fleet
	rights auth.Rights
}

func (h *histories) routes() {
	operation.Register(h.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "list-history", Method: http.MethodGet, Path: "/v1/history", Tags: []string{"decision"},
		Summary:     "List the changes of decisions, with their causes",
		Description: "Every change of a decision is one entry. What a token may not read of a cause is left out.",
		Errors:      []int{http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity},
	}), h.list)
}

// errNoHistory is the problem of a server that keeps no history.
func errNoHistory() *problem.Problem {
	return problem.New(api.ProblemNotFound, "this server keeps no history: it is turned off in its configuration")
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
	if h.log == nil || !h.log.Enabled() {
		return nil, errNoHistory()
	}
	page := &api.HistoryPage{Items: []api.HistoryEntry{}}
	for {
		read, err := h.log.Read(ctx, query)
		if err != nil {
			return nil, historyProblem(err)
		}
		page.Revision = read.Revision
		for _, item := range read.Items {
			if item.Gap != nil {
				page.Gaps = append(page.Gaps, api.HistoryGap{Since: item.Gap.Since, Until: item.Cursor.Revision, Reason: item.Gap.Reason})
				continue
			}
			entry, _, err := history.Decode(item)
			if err != nil {
				return nil, fmt.Errorf("read the history: %w", err)
			}
			page.Items = append(page.Items, h.shown(who, entry))
		}
		query.After, query.Limit = read.Next, in.Limit-len(page.Items)
		if read.Next == (history.Cursor{}) {
			return &historyOutput{page}, nil
		}
		if query.Limit <= 0 {
			page.Continue = read.Next.String()
			return &historyOutput{page}, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
	}
}

// query returns what is asked for, as far as it may be read.
func (h *histories) query(who auth.Identity, in *historyInput) (history.Query, error) {
	query := history.Query{
		Kind: api.Kind(in.Kind), Namespace: in.Namespace, Name: in.Name, Cluster: in.Cluster, Cause: in.Cause,
		Newest: in.Order != "oldest", Limit: in.Limit,
	}
	if in.Kind != "" && !slices.Contains(api.RecordedKinds, query.Kind) {
		return query, problem.Invalid("kind", "%q has no decisions: it must be placement, workload, cluster or magnum_cluster", in.Kind)
	}
	if why := api.CheckCauseType(in.Cause); in.Cause != "" && why != "" {
		return query, problem.Invalid("cause", "%s", why)
	}
	var err error
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
	if !query.Since.IsZero() && !query.Until.IsZero() && !query.Since.Before(query.Until) {
		return query, problem.Invalid("until", "%q must be after since, which is %q: entries are made at since or later, and before until", in.Until, in.Since)
	}
	if in.Continue != "" {
		if query.After, err = history.ParseCursor(in.Continue); err != nil {
			return query, problem.New(api.ProblemBadContinue, "continue is not a token that this server has returned")
		}
	}
	if in.Kind != "" || in.Namespace != "" {
		if err := h.mayRead(who, query.Kind, in.Namespace); err != nil {
			return query, err
		}
	}
	if !who.ReadsAll() {
		query.Visible = func(key api.Key) bool { return h.reads(who, key) }
	}
	return query, nil
}

// mayRead refuses who asks for a kind or a namespace that the token may not read.
func (h *histories) mayRead(who auth.Identity, kind api.Kind, namespace string) error {
	var refused error
	for _, k := range api.RecordedKinds {
		if kind != "" && kind != k {
			continue
		}
		err := who.MayReadKind(k)
		if namespace != "" {
			err = h.rights.MayReadKey(who, api.Key{Kind: k, Namespace: namespace})
		}
		if err == nil {
			return nil
		}
		refused = err
	}
	return refused
}

// reads reports whether a token may read an object that may no longer exist.
func (h *histories) reads(who auth.Identity, key api.Key) bool {
	if entry := h.fleet.Snapshot().Get(key); entry != nil {
		return h.rights.Reads(who, entry.Object)
	}
	info, ok := api.LookupKind(key.Kind)
	if !ok {
		return false
	}
	if info.Scope == api.Namespaced || key.Namespace != "" && info.Scope == api.GlobalOrNamespaced {
		return who.Reads(key.Kind, auth.OwnersIn(key.Namespace)...)
	}
	return who.ReadsEvery(key.Kind) // whom it belonged to is not known
}

// shown returns an entry without what a reader may not see.
func (h *histories) shown(who auth.Identity, entry api.HistoryEntry) api.HistoryEntry {
	if who.ReadsAll() {
		return entry
	}
	cause := &entry.Cause
	if cause.Object == nil || *cause.Object == entry.Object.Key {
		return entry
	}
	chosen := func(m api.HistoryMove) bool { return m.From == cause.Object.Name || m.To == cause.Object.Name }
	visible := h.reads(who, *cause.Object)
	if cause.Object.Kind == api.KindCluster && h.fleet.Snapshot().Get(*cause.Object) == nil {
		visible = visible || slices.ContainsFunc(entry.Moved, chosen) // the object itself showed it
	}
	if !visible {
		entry.Cause = api.Cause{Type: cause.Type}
	}
	if !visible || cause.Object.Namespace != entry.Object.Namespace {
		entry.Actor = nil // who may write what is shared is not theirs to know
	}
	return entry
}

// historyProblem returns the problem that an error of the history is.
func historyProblem(err error) error {
	gone, ok := errors.AsType[*history.GoneError](err)
	switch {
	case errors.Is(err, history.ErrForm):
		return problem.New(api.ProblemRevisionGone, "what this decision was made on was recorded by another version of the server, in a form that this one does not know: only that version can explain it")
	case !ok:
		return fmt.Errorf("read the history: %w", err)
	case gone.Time.IsZero():
		return problem.New(api.ProblemRevisionGone, "this part of the history is not kept: nothing is yet, or any more")
	}
	since := gone.Time.UTC().Format(time.RFC3339)
	if gone.Kept.Revision > 0 { // otherwise nothing was deleted
		since += ", revision " + strconv.FormatInt(gone.Kept.Revision, 10)
	}
	return problem.New(api.ProblemRevisionGone, "this part of the history is not kept: it is kept since %s", since)
}

// explainPast explains a decision as it was at a revision or time.
func (o *objects) explainPast(ctx context.Context, who auth.Identity, key api.Key, at string) (*explainOutput, error) {
	if o.history == nil || !o.history.Enabled() {
		return nil, errNoHistory()
	}
	revision, err := o.pastRevision(ctx, at)
	if err != nil {
		return nil, err
	}
	var past *history.Past
	explanation, err := o.decisions.ExplainPast(ctx, key, func(ctx context.Context) (objects []api.Object, then time.Time, err error) {
		if past, err = o.history.Past(ctx, revision, o.codec); err != nil {
			return nil, time.Time{}, historyProblem(err)
		}
		object := past.Get(key)
		if object == nil {
			return nil, time.Time{}, problem.New(api.ProblemNotFound, "%s did not exist at %s", key, past.Time.UTC().Format(time.RFC3339))
		}
		return past.Objects, past.Time, who.MayRead(object)
	})
	if err != nil {
		return nil, err
	}
	shown := *o.rights.VisiblePast(who, explanation, past.Get)
	shown.Revision = past.Revision
	return &explainOutput{&shown}, nil
}

// pastRevision returns the revision that a client means: a number, or a time.
func (o *objects) pastRevision(ctx context.Context, at string) (int64, error) {
	if revision, err := strconv.ParseInt(at, 10, 64); err == nil && revision > 0 {
		return revision, o.reached(ctx, revision)
	}
	then, err := time.Parse(time.RFC3339, at)
	if err != nil || strings.TrimSpace(at) == "" {
		return 0, problem.Invalid("at", "%q must be a revision of the store, such as 1042, or a time such as 2026-03-01T12:00:00Z", at)
	}
	revision, err := o.history.AtTime(ctx, then)
	if err != nil {
		return 0, historyProblem(err)
	}
	return revision, nil
}

// reached checks that the store has come to a revision. This server may be a little behind the store.
func (o *objects) reached(ctx context.Context, revision int64) error {
	if revision <= o.fleet.Snapshot().Revision() {
		return nil
	}
	page, err := o.history.Read(ctx, history.Query{Newest: true, Limit: 1})
	if err != nil {
		return historyProblem(err)
	}
	if revision > page.Revision {
		return problem.Invalid("at", "revision %d does not exist yet: the store is at revision %d", revision, page.Revision)
	}
	return nil
}

// recordEnd adds the record of a decision that ends with its object.
func (c *changes) recordEnd(ctx context.Context, object api.Object) []byte {
	return c.record(ctx, object, nil, &api.Cause{Type: api.CauseSpec, Object: new(api.KeyOf(object))}, nil, nil)
}

// recordKept adds the records of the decisions that are committed with a write as they were previewed.
func (c *changes) recordKept(ctx context.Context, written, before api.Object, writes []store.Write) {
	if c.history == nil || !c.history.Enabled() {
		return
	}
	cause := &api.Cause{Type: api.CausePreview, Object: new(api.KeyOf(written))}
	spec, _, err := c.codec.EncodeInputs(written)
	if err != nil {
		c.logger.ErrorContext(ctx, "decisions that are written as they were previewed cannot be explained later", "object", api.KeyOf(written).String(), "error", err)
	}
	for i := range writes {
		w := &writes[i]
		if w.Part != store.Status || len(w.Value) == 0 || w.CheckOnly || !slices.Contains(api.RecordedKinds, w.Key.Kind) {
			continue
		}
		was, is := before, written
		if w.Key != api.KeyOf(written) {
			entry := c.fleet.Snapshot().Get(w.Key)
			if entry == nil {
				continue // the write does not happen either
			}
			was = entry.Object
			is = was.Copy()
			if err := c.codec.DecodeStatus(is, w.Value); err != nil {
				continue // it was encoded by this server
			}
		}
		w.History = c.record(ctx, was, is, cause, w.Value, spec)
	}
}

func (c *changes) record(ctx context.Context, before, after api.Object, cause *api.Cause, status, written json.RawMessage) []byte {
	if c.history == nil || !c.history.Enabled() {
		return nil
	}
	record, _, err := history.Encode(before, after, history.Move{Time: c.now(), Cause: cause, Actor: writerOf(ctx), Written: written}, status)
	if err != nil {
		c.logger.ErrorContext(ctx, "a decision is not in the history", "error", err)
	}
	return record
}

// writerOf returns who makes a request.
func writerOf(ctx context.Context) *api.HistoryActor {
	note := requestOf(ctx)
	if note.id == "" {
		return nil
	}
	return &api.HistoryActor{Token: note.who.TokenID, RequestID: note.id}
}
