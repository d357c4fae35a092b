package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/audit"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

// auditor keeps the audit log of requests. Its log may be nil: then nothing is kept.
type auditor struct {
	log    *audit.Log
	codec  Codec
	logger *slog.Logger
}

// audited is what a request notes for the audit log while it is served.
type audited struct {
	// writes says that the operation writes, so that it has a line even if it was not refused.
	writes        bool
	operation     string
	object        *api.Key
	before, after *audit.Digest
	revision      int64
	refusal       *problem.Problem
}

// begin is called before an operation runs, and returns the problem if it must not.
func (a *auditor) begin(r *http.Request, op *huma.Operation, writes bool, object *api.Key) *problem.Problem {
	if a.log == nil {
		return nil
	}
	note := requestOf(r.Context())
	note.audited.writes, note.audited.operation, note.audited.object = writes, op.OperationID, object
	if !writes || !a.log.Required() {
		return nil
	}
	entry := a.entry(r, note)
	entry.Stage = audit.StageReceived
	if err := a.log.Write(entry); err != nil {
		a.logger.LogAttrs(r.Context(), slog.LevelError, "a write was refused because its audit line cannot be kept",
			slog.String("request_id", note.id), slog.Any("error", err))
		return problem.Unavailable("the server cannot write its audit log, which it requires for every write: nothing was changed")
	}
	return nil
}

// end is called before the response begins, with its status, so that everything that a client knows
// of is in the log.
func (a *auditor) end(r *http.Request, note *request, status int) {
	denied := status == http.StatusUnauthorized || status == http.StatusForbidden
	if a.log == nil || !note.audited.writes && !denied {
		return
	}
	entry := a.entry(r, note)
	entry.Stage, entry.Status, entry.Result = audit.StageDone, status, audit.ResultOf(status)
	if refusal := note.audited.refusal; refusal != nil {
		entry.Problem = string(refusal.Type)
		if denied {
			entry.Reason = refusal.Detail
		}
	}
	if entry.Result == audit.ResultAccepted {
		entry.Before, entry.After, entry.Revision = note.audited.before, note.audited.after, note.audited.revision
	}
	if err := a.log.Write(entry); err != nil {
		a.logger.LogAttrs(r.Context(), slog.LevelError, "a request is missing in the audit log",
			slog.String("request_id", note.id), slog.Any("error", err))
	}
}

// entry returns what is known of a request from its beginning.
func (a *auditor) entry(r *http.Request, note *request) audit.Entry {
	e := audit.Entry{
		RequestID: note.id, TraceID: note.span.TraceID(), Client: serve.ClientOf(r.RemoteAddr), Forwarded: isForwarded(a.codec, r),
		Method: methodOf(r), Route: note.route, Operation: note.audited.operation, Object: note.audited.object,
	}
	if who := note.who; who.TokenID != "" || who.Role != "" {
		e.Actor = &audit.Actor{Token: who.TokenID, Role: string(who.Role), Namespaces: who.Namespaces, RoleBindings: who.RoleBindings()}
	}
	return e
}

// required returns why writes are refused, or nil.
func (a *auditor) required() error {
	if !a.log.Required() {
		return nil
	}
	return a.log.Check()
}

// names notes what a request is about.
func (a *auditor) names(ctx context.Context, key api.Key) {
	requestOf(ctx).audited.object = &key
}

// wrote notes an object that a request has written. before is nil if it was created, and after if
// it was deleted.
func (a *auditor) wrote(ctx context.Context, key api.Key, before *stored, after api.Object, revision int64) {
	if a.log == nil {
		return
	}
	a.names(ctx, key)
	note := &requestOf(ctx).audited
	note.before, note.after, note.revision = nil, nil, revision
	switch {
	case before == nil:
	case before.object == nil:
		note.before = &audit.Digest{Damaged: true}
	default:
		note.before = digest(before.object)
	}
	if after != nil {
		note.after = digest(after)
	}
}

// digest returns the digest of what users write of an object. Secrets are never part of JSON.
func digest(object api.Object) *audit.Digest {
	object = object.Copy()
	meta := object.Meta()
	generation := meta.Generation
	*meta = api.Metadata{Name: meta.Name, Namespace: meta.Namespace, Cluster: meta.Cluster, Labels: meta.Labels}
	reflect.ValueOf(object.StatusPart()).Elem().SetZero()
	document, err := json.Marshal(object)
	if err != nil {
		return &audit.Digest{Generation: generation} // was decoded from JSON: does not happen
	}
	return audit.DigestOf(generation, document)
}
