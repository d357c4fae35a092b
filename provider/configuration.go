package provider

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/workloadidentity"
)

// configuration is the provider block.
type configuration struct {
	Endpoint       types.String `tfsdk:"endpoint"`
	Endpoints      types.List   `tfsdk:"endpoints"`
	Token          types.String `tfsdk:"token"`
	TokenSource    types.String `tfsdk:"token_source"`
	TokenAudience  types.String `tfsdk:"token_audience"`
	TokenFile      types.String `tfsdk:"token_file"`
	CACertFile     types.String `tfsdk:"ca_cert_file"`
	ClientCertFile types.String `tfsdk:"client_cert_file"`
	ClientKeyFile  types.String `tfsdk:"client_key_file"`
	Namespace      types.String `tfsdk:"namespace"`
	RequestTimeout types.String `tfsdk:"request_timeout"`
	MaxRetries     types.Int64  `tfsdk:"max_retries"`

	CheckConnection types.Bool `tfsdk:"check_connection"`
	WarnUnsatisfied types.Bool `tfsdk:"warn_unsatisfied"`
}

// environmentPrefix, followed by the name of a setting in upper case, is the name of its
// environment variable.
const environmentPrefix = "SCHEDULER_"

func configurationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"endpoint": schema.StringAttribute{
			MarkdownDescription: "Address of the scheduling server. Defaults to `" + client.DefaultEndpoint + "`. Environment variable: `SCHEDULER_ENDPOINT`.",
			Optional:            true,
		},
		"endpoints": schema.ListAttribute{
			MarkdownDescription: "Addresses of several servers that share a store, instead of `endpoint`. The provider uses one of them, and switches to the next if it fails, even in the middle of an apply. See the guide *Several servers*. Environment variable: `SCHEDULER_ENDPOINTS`, separated by commas.",
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
		},
		"token": schema.StringAttribute{
			MarkdownDescription: "Bearer token, created with `scheduler-server token create`. Environment variable: `SCHEDULER_TOKEN`.",
			Optional:            true,
			Sensitive:           true,
		},
		"token_source": schema.StringAttribute{
			MarkdownDescription: "Where to find a JSON Web Token of the run, if `token` is not set: `hcp_terraform`, `github_actions`, `environment` (the variable `SCHEDULER_ID_TOKEN`, for GitLab), `file` (`token_file`) or `none`. With `auto`, the first of these that is there is used. The server must trust the issuer: see the guide *Tokens, roles and namespaces*. Defaults to `auto`. Environment variable: `SCHEDULER_TOKEN_SOURCE`.",
			Optional:            true,
			Validators:          []validator.String{stringvalidator.OneOf(workloadidentity.Names()...)},
		},
		"token_audience": schema.StringAttribute{
			MarkdownDescription: "Audience that the token of the run must be for. A token for another audience is not sent. Defaults to `" + workloadidentity.DefaultAudience + "`. Environment variable: `SCHEDULER_TOKEN_AUDIENCE`.",
			Optional:            true,
		},
		"token_file": schema.StringAttribute{
			MarkdownDescription: "File with a JSON Web Token that is renewed by others, such as a projected service account token of Kubernetes. Environment variable: `SCHEDULER_TOKEN_FILE`.",
			Optional:            true,
		},
		"ca_cert_file": schema.StringAttribute{
			MarkdownDescription: "File with the PEM certificates that the server's certificate must chain to. Defaults to the certificates that the operating system trusts. Environment variable: `SCHEDULER_CA_CERT_FILE`.",
			Optional:            true,
		},
		"client_cert_file": schema.StringAttribute{
			MarkdownDescription: "File with the PEM certificate that the provider presents to the server. Requires `client_key_file`. Environment variable: `SCHEDULER_CLIENT_CERT_FILE`.",
			Optional:            true,
		},
		"client_key_file": schema.StringAttribute{
			MarkdownDescription: "File with the PEM key of `client_cert_file`. Environment variable: `SCHEDULER_CLIENT_KEY_FILE`.",
			Optional:            true,
		},
		"namespace": schema.StringAttribute{
			MarkdownDescription: "Namespace of objects that do not set one. Defaults to `" + api.DefaultNamespace + "`. Environment variable: `SCHEDULER_NAMESPACE`.",
			Optional:            true,
		},
		"request_timeout": schema.StringAttribute{
			MarkdownDescription: "Time limit for one attempt of a request, in addition to the time that the server is asked to wait for a decision. Defaults to `" + client.DefaultRequestTimeout.String() + "`. Environment variable: `SCHEDULER_REQUEST_TIMEOUT`.",
			Optional:            true,
		},
		"max_retries": schema.Int64Attribute{
			CustomType:          terraform.WholeNumber{},
			MarkdownDescription: "How many times a request is retried if the server cannot be reached or is busy. With several servers, a retry tries each of them. `0` disables retries. Defaults to `" + strconv.Itoa(client.DefaultMaxRetries) + "`. Environment variable: `SCHEDULER_MAX_RETRIES`.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(0, 100)},
		},
		"check_connection": schema.BoolAttribute{
			MarkdownDescription: "Whether to check first that the server can be reached and accepts the token, so that a problem is reported once and early. Set it to `false` if the same apply starts the server, or to plan without a server. Defaults to `true`. Environment variable: `SCHEDULER_CHECK_CONNECTION`.",
			Optional:            true,
		},
		"warn_unsatisfied": schema.BoolAttribute{
			MarkdownDescription: "Whether a refresh warns about placements, workloads, policies and clusters on clouds that did not get what they ask for. One warning lists all of them, each with the reason. Defaults to `true`. Environment variable: `SCHEDULER_WARN_UNSATISFIED`.",
			Optional:            true,
		},
	}
}

// Configure implements provider.Provider. Terraform calls it before any other operation, so
// problems that would affect all operations are reported here.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config configuration
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	userAgent := "terraform-provider-scheduler/" + p.version + " HashiCorp-Terraform/" + req.TerraformVersion
	s, check := config.session(p.version, userAgent, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if s.Pending() && req.ClientCapabilities.DeferralAllowed {
		resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
	}
	if check {
		if s.Connect(ctx, &resp.Diagnostics); resp.Diagnostics.HasError() {
			return
		}
	}
	p.configured.Store(s)
	resp.ResourceData, resp.DataSourceData = s, s
}

// session creates the connection from the configuration and the environment. check says whether to
// check that the server responds before using it.
func (c *configuration) session(version, userAgent string, diags *diag.Diagnostics) (s *terraform.Session, check bool) {
	given, unknown := c.settings(diags)
	if unknown != "" {
		return terraform.PendingSession(fmt.Errorf("the provider's %q depends on a value that is only known after apply: apply what it comes from first, with -target", unknown)), false
	}
	opts := client.Options{
		Endpoint:       given.text["endpoint"],
		Endpoints:      c.endpoints(given.text["endpoints"]),
		CACertFile:     given.text["ca_cert_file"],
		ClientCertFile: given.text["client_cert_file"],
		ClientKeyFile:  given.text["client_key_file"],
		UserAgent:      userAgent,
		GiveUp:         true,
		Observe:        logAttempt,
	}
	if !c.Endpoint.IsNull() && !c.Endpoints.IsNull() {
		settingError(diags, "endpoints", "it must be absent because endpoint is set")
	}
	opts.RequestTimeout = given.requestTimeout()
	opts.MaxRetries = given.maxRetries()
	opts.Token = given.token()
	if identity := given.identity(); identity != nil {
		opts.Tokens = identity
	}
	namespace := given.namespace()
	check = given.flag("check_connection", true)
	warn := given.flag("warn_unsatisfied", true)
	if diags.HasError() {
		return nil, false
	}
	connection, err := client.New(opts)
	if err != nil {
		diags.AddError("The provider's configuration cannot be used", terraform.Sentence(err.Error()))
		return nil, false
	}
	return terraform.NewSession(connection, version, namespace, warn), check
}

// logAttempt logs requests under TF_LOG=DEBUG. Bodies and headers, which may contain secrets, are
// not logged.
func logAttempt(ctx context.Context, a client.Attempt) {
	fields := map[string]any{"endpoint": a.Endpoint, "method": a.Method, "path": a.Path, "status": a.Status, "duration": a.Duration.String()}
	if a.Server != "" {
		fields["server"] = a.Server
	}
	if a.Err != nil {
		fields["error"] = a.Err.Error()
	}
	tflog.Debug(ctx, "request to the scheduling server", fields)
}

// endpoints returns the endpoints of the configuration, or those in a comma-separated text; nil =
// none.
func (c *configuration) endpoints(text string) []string {
	if elements := c.Endpoints.Elements(); len(elements) > 0 {
		endpoints := make([]string, len(elements))
		for i, element := range elements {
			text, _ := element.(types.String) // the schema guarantees the type
			endpoints[i] = text.ValueString()
		}
		return endpoints
	}
	if text == "" {
		return nil
	}
	endpoints := strings.Split(text, ",")
	for i := range endpoints {
		endpoints[i] = strings.TrimSpace(endpoints[i])
	}
	return endpoints
}
