package terraform

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// longestWait is how long one request asks the server to wait for a decision.
const longestWait = 10 * time.Second

// wait returns how long the server may delay the response to a write. Half of the timeout is
// reserved for the response: without one, the object would exist but not be in the state.
func (r *Resource) wait(plan tftypes.Value, limit time.Duration) *time.Duration {
	wait := min(longestWait, limit/2)
	if unawaited(plan) {
		wait = 0
	}
	return &wait
}

// timeout returns the timeout of an operation.
func (r *Resource) timeout(
	ctx context.Context,
	operation func(timeouts.Value, context.Context, time.Duration) (time.Duration, diag.Diagnostics),
	attribute func(context.Context, path.Path, any) diag.Diagnostics,
	diags *diag.Diagnostics,
) time.Duration {
	var value timeouts.Value
	diags.Append(attribute(ctx, path.Root("timeouts"), &value)...)
	if diags.HasError() || value.IsNull() || value.IsUnknown() {
		return defaultTimeout
	}
	limit, more := operation(value, ctx, defaultTimeout)
	diags.Append(more...)
	return limit
}

// key returns the key of the object that attributes describe.
func (r *Resource) key(attributes map[string]tftypes.Value) api.Key {
	key := api.Key{Kind: r.Kind, Name: TextOf(attributes["name"])}
	if parent := parentAttribute(r.scope()); parent != "" {
		key.Namespace = TextOf(attributes[parent])
	}
	return key
}

// values are the attributes of an object, a state of type t, as the server has it.
func (r *Resource) values(ctx context.Context, t tftypes.Type, object api.Object, prior map[string]tftypes.Value) (map[string]tftypes.Value, error) {
	document, err := Flatten(object)
	if err != nil {
		return nil, err
	}
	if r.Decision != nil {
		for name, value := range r.Decision(object) {
			document[name] = value
		}
	}
	spelled := maps.Clone(prior)
	for _, name := range r.Significant {
		if document[name] == nil {
			delete(spelled, name)
		}
	}
	attributes := map[string]schema.Attribute{}
	for name, attribute := range r.Attributes {
		attributes[name] = attribute
	}
	for name, attribute := range MetadataAttributes(r.scope()) {
		attributes[name] = attribute
	}
	values, err := stateValues(ctx, attributes, t, document, spelled, r.Local)
	if err != nil {
		return nil, err
	}
	values["timeouts"] = prior["timeouts"]
	return values, nil
}

// object returns the object that a plan requests. The plan contains everything except write-only
// values, which are only in the configuration. The configuration alone is not enough, because
// ignore_changes applies to plans only.
func (r *Resource) object(config, plan tftypes.Value, diags *diag.Diagnostics) api.Object {
	var d configDocument
	var object api.Object
	document, err := r.written(&d, config, plan)
	if err == nil {
		object, err = Unflatten(r.Kind, document)
	}
	if err != nil {
		diagnose(diags, "read the plan of a "+string(r.Kind), plan.Type(), err)
	}
	return object
}

// written returns the document of the object that a plan requests.
func (r *Resource) written(d *configDocument, config, plan tftypes.Value) (map[string]any, error) {
	document, err := r.read(d, plan)
	if err != nil {
		return nil, err
	}
	given, err := r.read(&configDocument{}, config)
	if err != nil {
		return nil, err
	}
	secrets := r.secrets()
	addSecrets(secrets, document, given)
	foldSecrets(secrets, document, false)
	return document, nil
}

// document returns the attributes of a configuration or plan that the API has.
func (r *Resource) document(d *configDocument, value tftypes.Value) (map[string]any, error) {
	document, err := r.read(d, value)
	if err == nil {
		foldSecrets(r.secrets(), document, false)
	}
	return document, err
}

// read returns the document of all attributes, including derived ones.
func (r *Resource) read(d *configDocument, value tftypes.Value) (map[string]any, error) {
	return r.readAttributes(d, AttributesOf(value))
}

func (r *Resource) readAttributes(d *configDocument, attributes map[string]tftypes.Value) (map[string]any, error) {
	document, secrets := map[string]any{}, r.secrets()
	for name, attribute := range attributes {
		if !r.isWritten(name) {
			continue
		}
		field, err := d.read(attribute, path.Root(name))
		if err != nil {
			return nil, err
		}
		if field != nil {
			document[name] = field
		}
	}
	d.Nulls = slices.DeleteFunc(d.Nulls, func(at path.Path) bool { return isSecretElement(secrets, at) })
	d.spell = func(fields api.FieldErrors) api.FieldErrors { return secretSpelling(secrets, fields) }
	d.Unknown = slices.DeleteFunc(d.Unknown, func(at path.Path) bool { return isStoredSecret(secrets, at) })
	return document, nil
}

// isWritten reports whether an attribute is part of what is written to the server, or says which of
// its secrets the server has.
func (r *Resource) isWritten(name string) bool {
	declared := r.Attributes[name]
	readOnly := declared != nil && !declared.IsOptional() && !declared.IsRequired() && !isStoredSecret(r.secrets(), path.Root(name))
	return name != "timeouts" && !r.Local[name] && !readOnly
}

// replace overwrites an object, unless somebody else has changed the user's part of it since the
// plan was made. seen is the version that the plan was made from; without one, any
// version is overwritten.
func (r *Resource) replace(ctx context.Context, object api.Object, seen *version, opts client.PutOptions) (api.Object, error) {
	if seen != nil {
		opts.IfMatch = seen.ResourceVersion
	}
	stored, err := r.put(ctx, object, opts)
	if seen == nil || client.StatusOf(err) != http.StatusPreconditionFailed || previewRefused(err, opts) {
		return stored, err
	}
	present, getErr := r.session.client.Get(ctx, api.KeyOf(object))
	switch {
	case client.IsNotFound(getErr):
		// Deleted since the plan: create it again.
		opts.IfMatch, opts.Create = "", true
		return r.put(ctx, object, opts)
	case getErr == nil && seen.sameIntent(present):
		// Only the server changed it, to request a new decision.
		opts.IfMatch = present.Meta().ResourceVersion
		return r.put(ctx, object, opts)
	}
	return nil, err
}

// put writes an object. Every write may affect decisions, so lists fetched before it are dropped.
func (r *Resource) put(ctx context.Context, object api.Object, opts client.PutOptions) (api.Object, error) {
	defer r.session.lists.forget()
	defer r.changes()()
	r.session.knownFields(ctx).adapt(r.Kind, &opts)
	stored, err := r.session.client.Put(ctx, object, opts)
	if err == nil && opts.Create && r.Dependents != "" {
		r.session.replaced.restore(ctx, r.session.client, api.KeyOf(object))
	}
	return stored, err
}

// changes records the start of a write that affects other objects, unless this kind is itself
// affected by others.
func (r *Resource) changes() (end func()) {
	if r.Choice != nil && r.Choice.Moved {
		return func() {}
	}
	return r.session.changes.begin()
}

// delete deletes an object. It succeeds if the object is already gone.
func (r *Resource) delete(ctx context.Context, key api.Key) error {
	defer r.session.lists.forget()
	defer r.changes()()
	defer r.session.deletions.begin(key)()
	if r.Dependents != "" {
		r.session.replaced.remember(ctx, r.session.client, r.Dependents, key)
	}
	if err := r.session.client.Delete(ctx, key); err != nil && !client.IsNotFound(err) {
		return err
	}
	return nil
}
