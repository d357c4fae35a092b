package terraform

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// typePrefix is the prefix of all resource and data source names.
const typePrefix = "scheduler_"

// parentAttribute returns the attribute that names the namespace or cluster of an object, or "" for
// global objects.
func parentAttribute(scope api.Scope) string {
	switch scope {
	case api.Namespaced, api.GlobalOrNamespaced:
		return "namespace"
	case api.OfCluster:
		return "cluster"
	case api.Global:
	}
	return ""
}

// MetadataAttributes returns the attributes that every object has.
func MetadataAttributes(scope api.Scope) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"name": schema.StringAttribute{
			MarkdownDescription: "Name: up to 63 lowercase letters, digits and `-`, starting and ending with a letter or digit. Changing it replaces the object.",
			Required:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"labels": schema.MapAttribute{
			MarkdownDescription: "Labels, matched by constraints and selectors.",
			ElementType:         types.StringType,
			Optional:            true,
		},
	}
	switch scope {
	case api.Global:
	case api.Namespaced:
		attributes["namespace"] = schema.StringAttribute{
			MarkdownDescription: "Namespace. Defaults to the namespace of the provider. Changing it replaces the object.",
			Optional:            true,
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplace()},
			Validators:          refusesEmpty,
		}
	case api.GlobalOrNamespaced:
		attributes["namespace"] = schema.StringAttribute{
			MarkdownDescription: "Namespace. If omitted, the object is global. Changing it replaces the object.",
			Optional:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			Validators:          refusesEmpty,
		}
	case api.OfCluster:
		attributes["cluster"] = schema.StringAttribute{
			MarkdownDescription: "Name of the cluster that the object belongs to. The cluster must exist, and the object is deleted with it. Changing it replaces the object.",
			Required:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		}
	}
	return attributes
}

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *Resource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	attributes := map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the object."},
	}
	switch r.scope() {
	case api.Global:
	case api.Namespaced:
		attributes["namespace"] = identityschema.StringAttribute{OptionalForImport: true, Description: "Namespace of the object. Defaults to the namespace of the provider."}
	case api.GlobalOrNamespaced:
		attributes["namespace"] = identityschema.StringAttribute{OptionalForImport: true, Description: "Namespace of the object. Omit it if the object is global."}
	case api.OfCluster:
		attributes["cluster"] = identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the cluster that the object belongs to."}
	}
	resp.IdentitySchema = identityschema.Schema{Attributes: attributes}
}

// setIdentity sets the identity of an object. identity is nil if Terraform does not support
// identities.
func setIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, scope api.Scope, key api.Key, diags *diag.Diagnostics) {
	if identity == nil {
		return
	}
	diags.Append(identity.SetAttribute(ctx, path.Root("name"), key.Name)...)
	if attribute := parentAttribute(scope); attribute != "" {
		parent := types.StringNull()
		if key.Namespace != "" {
			parent = types.StringValue(key.Namespace)
		}
		diags.Append(identity.SetAttribute(ctx, path.Root(attribute), parent)...)
	}
}

// ImportState implements resource.ResourceWithImportState: by ID ("name", "namespace/name" or
// "cluster/name"), or by identity.
func (r *Resource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	key := api.Key{Kind: r.Kind}
	attribute := parentAttribute(r.scope())
	if req.ID != "" || req.Identity == nil || req.Identity.Raw.IsFullyNull() {
		parsed, err := r.parseImportID(req.ID)
		if err != nil {
			resp.Diagnostics.AddError("Cannot import "+typePrefix+string(r.Kind), Sentence(err.Error()))
			return
		}
		key = parsed
	} else {
		var parent types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("name"), &key.Name)...)
		if attribute != "" {
			resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root(attribute), &parent)...)
		}
		key.Namespace = parent.ValueString()
		r.defaultNamespace(&key)
		if key.Name == "" {
			resp.Diagnostics.AddError("Cannot import "+typePrefix+string(r.Kind), "The identity's name must not be empty.")
		}
		if r.scope() == api.OfCluster && key.Namespace == "" {
			resp.Diagnostics.AddError("Cannot import "+typePrefix+string(r.Kind), "The identity's cluster must not be empty.")
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	setIdentity(ctx, resp.Identity, r.scope(), key, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), key.Name)...)
	if key.Namespace != "" {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(attribute), key.Namespace)...)
	}
}

// ImportIDError says that an import ID is malformed.
type ImportIDError struct {
	ID   string
	Want string
}

// Error names the ID and the expected form.
func (e *ImportIDError) Error() string {
	return fmt.Sprintf("the import ID %q does not have the form %s", e.ID, e.Want)
}

// parseImportID parses "name", "namespace/name" or "cluster/name". A namespaced object without a
// namespace is in the provider's namespace.
func (r *Resource) parseImportID(id string) (api.Key, error) {
	namespace, name, qualified := strings.Cut(id, "/")
	if !qualified {
		namespace, name = "", id
	}
	key := api.Key{Kind: r.Kind, Namespace: namespace, Name: name}
	wrong := name == "" || strings.Contains(name, "/") || qualified && namespace == ""
	want := "<namespace>/<name>, or <name>"
	switch r.scope() {
	case api.Global:
		want = "<name>"
		wrong = wrong || qualified
	case api.OfCluster:
		want = "<cluster>/<name>"
		wrong = wrong || !qualified
	case api.Namespaced, api.GlobalOrNamespaced:
	}
	if wrong {
		return api.Key{}, &ImportIDError{ID: id, Want: want}
	}
	r.defaultNamespace(&key)
	return key, nil
}

// defaultNamespace sets the provider's namespace in the key of a namespaced object without one.
func (r *Resource) defaultNamespace(key *api.Key) {
	if r.scope() != api.Namespaced || key.Namespace != "" {
		return
	}
	key.Namespace = api.DefaultNamespace
	if r.session != nil && r.session.namespace != "" {
		key.Namespace = r.session.namespace
	}
}
