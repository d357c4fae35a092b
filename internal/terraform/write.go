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

// wait is how long the server may hold back the answer to a write. Half of the
// time limit stays for the answer: without one the object would exist and the
// state would not know.
func (r *Resource) wait(plan tftypes.Value, limit time.Duration) *time.Duration {
	wait := min(longestWait, limit/2)
	if unawaited(plan) {
		wait = 0
	}
	return &wait
}

// timeout is the time limit of an operation.
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

// key is the key of the object that attributes describe.
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

// object is the object that a plan asks for. The plan has everything but the
// write-only values, which only the configuration has; the configuration alone
// would not do, because ignore_changes is applied to plans only.
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

// written is the document of the object that a plan asks for.
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

// document reads what the API knows of a configuration or a plan.
func (r *Resource) document(d *configDocument, value tftypes.Value) (map[string]any, error) {
	document, err := r.read(d, value)
	if err == nil {
		foldSecrets(r.secrets(), document, false)
	}
	return document, err
}

// Ask is the document of all attributes that follow from a configuration.
func (r *Resource) read(d *configDocument, value tftypes.Value) (map[string]any, error) {
	document, secrets := map[string]any{}, r.secrets()
	for name, attribute := range AttributesOf(value) {
		declared := r.Attributes[name]
		readOnly := declared != nil && !declared.IsOptional() && !declared.IsRequired() && !isStoredSecret(secrets, path.Root(name))
		if name == "timeouts" || r.Local[name] || readOnly {
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
	d.spell = func(fields api.FieldErrors) api.FieldErrors { return secretSpelling(secrets, value, fields) }
	d.Unknown = slices.DeleteFunc(d.Unknown, func(at path.Path) bool { return isStoredSecret(secrets, at) })
	return document, nil
}

// replace writes over an object, unless somebody else changed what the user
// asked of it since the plan was made. seen is the version the plan was made
// from; without one (an old state) anything is written over.
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
		// Deleted since the plan: what the plan asks for is still the same.
		opts.IfMatch, opts.Create = "", true
		return r.put(ctx, object, opts)
	case getErr == nil && seen.sameIntent(present):
		// Only the server touched it, to answer a request for a fresh decision.
		opts.IfMatch = present.Meta().ResourceVersion
		return r.put(ctx, object, opts)
	}
	return nil, err
}

// put writes an object. Every write may move decisions, so no list read before
// it is used after it.
func (r *Resource) put(ctx context.Context, object api.Object, opts client.PutOptions) (api.Object, error) {
	defer r.session.lists.forget()
	defer r.changes()()
	stored, err := r.session.client.Put(ctx, object, opts)
	if err == nil && opts.Create && r.Dependents != "" {
		r.session.replaced.restore(ctx, r.session.client, api.KeyOf(object))
	}
	return stored, err
}

// changes begins a change of what others go by, unless it is these that go by others.
func (r *Resource) changes() (end func()) {
	if r.Choice != nil && r.Choice.Moved {
		return func() {}
	}
	return r.session.changes.begin()
}

// delete removes an object; one that is gone already is removed.
func (r *Resource) delete(ctx context.Context, key api.Key) error {
	defer r.session.lists.forget()
	defer r.changes()()
	if r.Dependents != "" {
		r.session.replaced.remember(ctx, r.session.client, r.Dependents, key)
	}
	if err := r.session.client.Delete(ctx, key); err != nil && !client.IsNotFound(err) {
		return err
	}
	return nil
}
