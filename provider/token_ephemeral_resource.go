package provider

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// tokenLifetime is how long a token is valid if the configuration does not say.
const tokenLifetime = time.Hour

// idOfToken is under which the ID of a token is kept until it is revoked.
const idOfToken = "id"

var (
	_ ephemeral.EphemeralResourceWithConfigure      = (*tokenEphemeralResource)(nil)
	_ ephemeral.EphemeralResourceWithClose          = (*tokenEphemeralResource)(nil)
	_ ephemeral.EphemeralResourceWithValidateConfig = (*tokenEphemeralResource)(nil)
)

// tokenEphemeralResource is a token that lasts as long as a run needs it. It is in no plan and in no state.
type tokenEphemeralResource struct{ session *terraform.Session }

func newTokenEphemeralResource() ephemeral.EphemeralResource { return &tokenEphemeralResource{} }

// tokenModel has the attributes of the token.
type tokenModel struct {
	Role        types.String `tfsdk:"role"`
	Namespaces  types.List   `tfsdk:"namespaces"`
	Description types.String `tfsdk:"description"`
	Lifetime    types.String `tfsdk:"lifetime"`
	ID          types.String `tfsdk:"id"`
	Token       types.String `tfsdk:"token"`
	ExpiresAt   types.String `tfsdk:"expires_at"`
}

// lifetime returns how long the token is valid, or an error about the attribute.
func (m *tokenModel) lifetime(diags *diag.Diagnostics) time.Duration {
	lifetime, err := api.Duration(m.Lifetime.ValueString()).Parse()
	if lifetime == 0 {
		lifetime = tokenLifetime
	}
	if err == nil && lifetime < time.Minute {
		err = errors.New("must be at least 1m")
	}
	if err != nil {
		diags.AddAttributeError(path.Root("lifetime"), "Invalid lifetime", terraform.Sentence("lifetime: "+err.Error()))
	}
	return lifetime
}

// Metadata implements ephemeral.EphemeralResource.
func (r *tokenEphemeralResource) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_token"
}

// Configure implements ephemeral.EphemeralResourceWithConfigure.
func (r *tokenEphemeralResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	r.session = terraform.SessionOf(req.ProviderData, &resp.Diagnostics)
}

// Schema implements ephemeral.EphemeralResource.
func (r *tokenEphemeralResource) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A token for the scheduling server that lasts as long as the run needs it, for another provider or a program that the run starts. " +
			"It is in no plan and in no state. Terraform revokes it at the end of each plan and apply; if the run is killed, it ends with its `lifetime`. " +
			"The provider needs the token of an administrator, and Terraform 1.10 or OpenTofu 1.11.",
		Attributes: map[string]schema.Attribute{
			"role":        schema.StringAttribute{Required: true, MarkdownDescription: "A built-in role (`admin`, `editor`, `viewer` or `agent`) or one of the server's configuration."},
			"namespaces":  schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Namespaces to limit the token to. If omitted, all. Not allowed for roles that may administer."},
			"description": schema.StringAttribute{Optional: true, MarkdownDescription: "What the token is for, at most 256 characters."},
			"lifetime":    schema.StringAttribute{Optional: true, MarkdownDescription: "How long the token is valid at most, such as `30m`. It must outlast the run. Default: `1h`."},
			"id":          schema.StringAttribute{Computed: true, MarkdownDescription: "ID of the token: the part before the dot."},
			"token":       schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "The token, to send as `Authorization: Bearer`."},
			"expires_at":  schema.StringAttribute{Computed: true, MarkdownDescription: "When the token expires."},
		},
	}
}

// ValidateConfig implements ephemeral.EphemeralResourceWithValidateConfig.
func (r *tokenEphemeralResource) ValidateConfig(ctx context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse) {
	var model tokenModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() || model.Lifetime.IsUnknown() {
		return
	}
	model.lifetime(&resp.Diagnostics)
}

// Open implements ephemeral.EphemeralResource: it creates the token.
func (r *tokenEphemeralResource) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var model tokenModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() || !r.session.Connected(&resp.Diagnostics) {
		return
	}
	lifetime := model.lifetime(&resp.Diagnostics)
	var namespaces []string
	resp.Diagnostics.Append(model.Namespaces.ElementsAs(ctx, &namespaces, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	request := map[string]any{"role": model.Role.ValueString(), "expires_at": time.Now().Add(lifetime).UTC().Format(time.RFC3339)}
	if len(namespaces) > 0 {
		request["namespaces"] = namespaces
	}
	if text := model.Description.ValueString(); text != "" {
		request["description"] = text
	}
	var created struct {
		ID        string `json:"id"`
		Token     string `json:"token"`
		ExpiresAt string `json:"expires_at"`
	}
	if err := r.session.Client().Call(ctx, http.MethodPost, "/v1/tokens", request, &created); err != nil {
		r.session.Failed(&resp.Diagnostics, "create a token", req.Config.Raw.Type(), err)
		return
	}
	model.ID, model.Token, model.ExpiresAt = types.StringValue(created.ID), types.StringValue(created.Token), types.StringValue(created.ExpiresAt)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, idOfToken, []byte(`"`+created.ID+`"`))...)
}

// Close implements ephemeral.EphemeralResourceWithClose: it revokes the token.
func (r *tokenEphemeralResource) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	text, diags := req.Private.GetKey(ctx, idOfToken)
	resp.Diagnostics.Append(diags...)
	if len(text) < 2 || !r.session.Connected(&resp.Diagnostics) {
		return
	}
	id := string(text[1 : len(text)-1])
	if err := r.session.Client().Call(ctx, http.MethodDelete, "/v1/tokens/"+id, nil, nil); err != nil && !client.IsNotFound(err) {
		resp.Diagnostics.AddWarning("A token was not revoked", terraform.Sentence("the token "+id+" of this run stays valid until it expires: "+err.Error()))
	}
}
