package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// freezeRoutes adds the routes that freeze and thaw: they write and delete the freezes with the name
// api.FreezeName. The other routes are those of every kind.
func (o *objects) freezeRoutes() {
	list := operation.ListOf(o.api.Schema(&api.Freeze{}))
	freeze := operation.Declare(auth.AccessWrite, huma.Operation{
		OperationID: "freeze-moves", Method: http.MethodPost, Path: "/v1/freeze", Tags: []string{string(api.KindFreeze)},
		Summary:     "Freeze all decisions, or those of some namespaces",
		Description: "Nothing moves until then that need not: what decisions must leave, and what the write of a user asks for, is not held. Replaces an earlier freeze of this route.",
		Errors:      []int{http.StatusUnprocessableEntity}, MaxBodyBytes: o.api.MaxBody,
		Responses: map[string]*huma.Response{"200": operation.JSONResponse("OK", list)},
	})
	operation.Register(o.api, freeze, o.freeze)
	o.api.DescribeBody(freeze, o.api.Schema(api.FreezeRequest{}), true)
	operation.Register(o.api, operation.Declare(auth.AccessDelete, huma.Operation{
		OperationID: "thaw-moves", Method: http.MethodDelete, Path: "/v1/freeze", Tags: []string{string(api.KindFreeze)},
		Summary:     "End the freeze of all decisions, or of some namespaces",
		Description: "What was held is decided again with the figures of now. Freezes with other names stay. Succeeds if there is no freeze.",
	}), o.thaw)
}

type freezeInput struct {
	Payload operation.Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

type freezeOutput struct {
	Body *api.List[api.Object]
}

type thawInput struct {
	Namespaces string `query:"namespaces" doc:"Namespaces to thaw, separated by commas. If omitted, the freeze of all decisions ends."`
	Wait       string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

// freeze writes the freezes of a request.
func (o *objects) freeze(ctx context.Context, in *freezeInput) (*freezeOutput, error) {
	var request api.FreezeRequest
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	if err := checkFreeze(&request).Err(); err != nil {
		return nil, err
	}
	if now := o.now(); request.Until != nil && !request.Until.After(now) {
		return nil, problem.Invalid("until", "%s is over: it is %s now", request.Until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	keys := freezeKeys(request.Namespaces)
	for _, key := range keys { // all of them before the first is written
		if err := auth.Of(ctx).MayWrite(&api.Freeze{Metadata: api.Metadata{Namespace: key.Namespace, Name: key.Name}}); err != nil {
			return nil, err
		}
	}
	info, _ := api.LookupKind(api.KindFreeze)
	out := &freezeOutput{&api.List[api.Object]{Items: make([]api.Object, 0, len(keys))}}
	for i, key := range keys {
		document, err := json.Marshal(map[string]any{"spec": request.FreezeSpec})
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		put := &PutInput{Wait: "0s", Payload: operation.Payload{Data: document}}
		if i == len(keys)-1 {
			put.Wait = in.Wait
		}
		put.Target.Namespace, put.Target.Name = key.Namespace, key.Name
		written, err := o.put(ctx, info, put, "")
		if err != nil {
			return nil, err
		}
		if object, ok := written.Body.(api.Object); ok {
			out.Body.Items = append(out.Body.Items, object)
		}
		out.Body.ResourceVersion = strings.Trim(written.ETag, `"`)
	}
	return out, nil
}

// maxFrozen is the number of namespaces that one request may freeze.
const maxFrozen = 100

// checkFreeze checks a request as the freezes that it asks for.
func checkFreeze(request *api.FreezeRequest) (errs api.FieldErrors) {
	if n := len(request.Namespaces); n > maxFrozen {
		errs.Add("namespaces", "must have at most %d entries, has %d", maxFrozen, n)
		return errs
	}
	for i, key := range freezeKeys(request.Namespaces) {
		if first := slices.Index(request.Namespaces, key.Namespace); first >= 0 && first < i {
			errs.Add(fmt.Sprintf("namespaces[%d]", i), "%q is already listed at position %d", key.Namespace, first)
			continue
		}
		f := &api.Freeze{Metadata: api.Metadata{Namespace: key.Namespace, Name: key.Name}, Spec: request.FreezeSpec}
		if len(request.Namespaces) > 0 && key.Namespace == "" {
			errs.Add(fmt.Sprintf("namespaces[%d]", i), "must not be empty")
		}
		f.SetDefaults()
		for _, e := range f.Validate() {
			switch field, ofSpec := strings.CutPrefix(e.Field, "spec."); {
			case !ofSpec:
				errs.Add(fmt.Sprintf("namespaces[%d]", i), "%s", e.Message)
			case i == 0:
				errs.Add(field, "%s", e.Message)
			}
		}
	}
	return errs
}

// thaw deletes the freezes of some namespaces.
func (o *objects) thaw(ctx context.Context, in *thawInput) (*struct{}, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	var namespaces []string
	if in.Namespaces != "" {
		namespaces = strings.Split(in.Namespaces, ",")
	}
	if slices.Contains(namespaces, "") { // never the freeze of everything by mistake
		return nil, problem.Invalid("namespaces", "must not contain an empty name")
	}
	keys := freezeKeys(namespaces)
	for _, key := range keys { // all of them before the first is deleted
		if err := o.changes.mayRemove(auth.Of(ctx), key); err != nil {
			return nil, err
		}
		if err := auth.Of(ctx).MayWrite(&api.Freeze{Metadata: api.Metadata{Namespace: key.Namespace, Name: key.Name}}); err != nil {
			return nil, err
		}
		o.changes.audit.names(ctx, key)
	}
	for _, key := range keys {
		if o.fleet.Snapshot().Get(key) == nil {
			continue
		}
		revision, err := o.changes.remove(ctx, key, precondition{})
		if err != nil {
			return nil, err
		}
		o.waits.await(ctx, revision, wait)
	}
	return nil, nil
}

// freezeKeys returns the keys of the freezes of some namespaces, or of the global one.
func freezeKeys(namespaces []string) []api.Key {
	if len(namespaces) == 0 {
		return []api.Key{{Kind: api.KindFreeze, Name: api.FreezeName}}
	}
	keys := make([]api.Key, len(namespaces))
	for i, namespace := range namespaces {
		keys[i] = api.Key{Kind: api.KindFreeze, Namespace: namespace, Name: api.FreezeName}
	}
	return keys
}
