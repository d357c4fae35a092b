package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
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
			MarkdownDescription: "Where to find a JSON Web Token of the run, if `token` is not set: `hcp_terraform`, `github_actions`, `environment` (the variable `SCHEDULER_ID_TOKEN`, for GitLab), `file` (`token_file`) or `none`. With `auto`, the first one available is used. The server must trust the issuer: see the guide *Tokens, roles and namespaces*. Defaults to `auto`. Environment variable: `SCHEDULER_TOKEN_SOURCE`.",
			Optional:            true,
			Validators:          []validator.String{stringvalidator.OneOf(workloadidentity.Names()...)},
		},
		"token_audience": schema.StringAttribute{
			MarkdownDescription: "Audience that the token of the run must be for. A token for another audience is not sent. Defaults to `" + workloadidentity.DefaultAudience + "`. Environment variable: `SCHEDULER_TOKEN_AUDIENCE`.",
			Optional:            true,
		},
		"token_file": schema.StringAttribute{
			MarkdownDescription: "File with a JSON Web Token that another program keeps renewing, such as a projected service account token of Kubernetes. Environment variable: `SCHEDULER_TOKEN_FILE`.",
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
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = s, s, s
}

// session creates the connection from the configuration and the environment. check says whether to
// check that the server responds before using it.
func (c *configuration) session(version, userAgent string, diags *diag.Diagnostics) (s *terraform.Session, check bool) {
	settings := []struct {
		name  string
		value types.String
		text  string
	}{
		{name: "endpoint", value: c.Endpoint},
		{name: "endpoints", value: listString(c.Endpoints)},
		{name: "token", value: c.Token},
		{name: "token_source", value: c.TokenSource},
		{name: "token_audience", value: c.TokenAudience},
		{name: "token_file", value: c.TokenFile},
		{name: "ca_cert_file", value: c.CACertFile},
		{name: "client_cert_file", value: c.ClientCertFile},
		{name: "client_key_file", value: c.ClientKeyFile},
		{name: "namespace", value: c.Namespace},
		{name: "request_timeout", value: c.RequestTimeout},
		{name: "max_retries", value: numberString(c.MaxRetries)},
		{name: "check_connection", value: boolString(c.CheckConnection)},
		{name: "warn_unsatisfied", value: boolString(c.WarnUnsatisfied)},
	}
	text := map[string]string{}
	given := !c.Endpoint.IsNull() || !c.Endpoints.IsNull()
	for _, s := range settings {
		if s.value.IsUnknown() {
			return terraform.PendingSession(fmt.Errorf("the provider's %q depends on a value that is only known after apply: apply what it comes from first, with -target", s.name)), false
		}
		text[s.name] = s.value.ValueString()
		// If the configuration sets endpoint or endpoints, the environment variables of both are
		// ignored.
		if s.value.IsNull() && (!given || !strings.HasPrefix(s.name, "endpoint")) {
			text[s.name] = os.Getenv(environmentName(s.name))
		}
	}
	opts := client.Options{
		Endpoint:       text["endpoint"],
		Endpoints:      c.endpoints(text["endpoints"]),
		Token:          api.NewSecret(text["token"]),
		CACertFile:     text["ca_cert_file"],
		ClientCertFile: text["client_cert_file"],
		ClientKeyFile:  text["client_key_file"],
		UserAgent:      userAgent,
		GiveUp:         true,
		Observe:        logAttempt,
	}
	if !c.Endpoint.IsNull() && !c.Endpoints.IsNull() {
		settingError(diags, "endpoints", "it must be absent because endpoint is set")
	}
	for i, element := range c.Endpoints.Elements() {
		if at := path.Root("endpoints").AtListIndex(i); element.IsNull() {
			diags.AddAttributeError(at, "Invalid "+at.String(), terraform.Sentence(at.String()+": must not be null"))
		}
	}
	for _, name := range []string{"token_source", "token_audience", "token_file"} {
		for _, s := range settings {
			if s.name == name && s.value.ValueString() != "" && c.Token.ValueString() != "" {
				diags.AddAttributeWarning(path.Root(name), name+" is not used", "token is set, so "+name+" has no effect. Remove one of the two.")
			}
		}
	}
	if timeout := text["request_timeout"]; timeout != "" {
		d, err := time.ParseDuration(timeout)
		if err != nil || d <= 0 {
			settingError(diags, "request_timeout", fmt.Sprintf("%q is not a duration above 0: write a number with a unit, such as \"30s\" or \"2m\"", timeout))
		}
		opts.RequestTimeout = d
	}
	if retries := text["max_retries"]; retries != "" {
		n, err := strconv.Atoi(retries)
		if err != nil || n < 0 {
			settingError(diags, "max_retries", fmt.Sprintf("%q is not a whole number of at least 0", retries))
		}
		opts.MaxRetries = n
		if n == 0 {
			opts.MaxRetries = -1
		}
	}
	if strings.ContainsAny(text["token"], "\r\n\x00") {
		settingError(diags, "token", "a token has no line breaks; one that is read from a file may end with one: write trimspace(file(…))")
	}
	if text["token"] == "" {
		identity, err := workloadidentity.Find(workloadidentity.Options{
			Source: text["token_source"], Audience: text["token_audience"], File: text["token_file"],
			Getenv: os.Getenv, Now: time.Now,
		})
		if err != nil {
			settingError(diags, "token_source", err.Error())
		}
		if identity != nil {
			opts.Tokens = identity
		}
	}
	if ns := text["namespace"]; ns != "" {
		if message := terraform.WrongName(ns); message != "" {
			settingError(diags, "namespace", message)
		}
	}
	check = boolSetting(text, "check_connection", true, diags)
	warn := boolSetting(text, "warn_unsatisfied", true, diags)
	if diags.HasError() {
		return nil, false
	}
	if file, identity := text["token_file"], opts.Tokens != nil; check && identity && file != "" {
		if _, err := os.Stat(file); err != nil {
			settingError(diags, "token_file", err.Error())
			return nil, false
		}
	}
	connection, err := client.New(opts)
	if wrong, ok := errors.AsType[*client.EndpointError](err); ok {
		at, name := path.Root("endpoint"), "endpoint"
		switch {
		case !c.Endpoints.IsNull():
			at, name = path.Root("endpoints").AtListIndex(wrong.Index), "endpoints"
		case opts.Endpoint == "":
			at, name = path.Root("endpoints"), "endpoints"
		}
		diags.AddAttributeError(at, "Invalid "+at.String(), terraform.Sentence(err.Error())+" It may also come from the environment variable "+environmentName(name)+".")
		return nil, false
	}
	if wrong, ok := errors.AsType[*client.FileError](err); ok {
		settingError(diags, wrong.Setting, err.Error())
		return nil, false
	}
	if err != nil {
		diags.AddError("The provider's configuration cannot be used", terraform.Sentence(err.Error()))
		return nil, false
	}
	return terraform.NewSession(connection, version, cmp.Or(text["namespace"], api.DefaultNamespace), warn), check
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

func environmentName(setting string) string {
	upper := []byte(environmentPrefix + setting)
	for i, b := range upper {
		if 'a' <= b && b <= 'z' {
			upper[i] = b - 'a' + 'A'
		}
	}
	return string(upper)
}

func numberString(n types.Int64) types.String {
	switch {
	case n.IsUnknown():
		return types.StringUnknown()
	case n.IsNull():
		return types.StringNull()
	}
	return types.StringValue(strconv.FormatInt(n.ValueInt64(), 10))
}

// listString returns a string that is null or unknown if the list is. Its value is not used.
func listString(list types.List) types.String {
	switch {
	case list.IsNull():
		return types.StringNull()
	case list.IsUnknown(), slices.ContainsFunc(list.Elements(), attr.Value.IsUnknown):
		return types.StringUnknown()
	}
	return types.StringValue("")
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

func boolString(b types.Bool) types.String {
	switch {
	case b.IsUnknown():
		return types.StringUnknown()
	case b.IsNull():
		return types.StringNull()
	}
	return types.StringValue(strconv.FormatBool(b.ValueBool()))
}

// boolSetting returns a boolean setting; unset is its default.
func boolSetting(text map[string]string, name string, unset bool, diags *diag.Diagnostics) bool {
	value := text[name]
	if value == "" {
		return unset
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		settingError(diags, name, fmt.Sprintf("%q is neither true nor false", value))
	}
	return b
}

// settingError reports an error for an attribute of the provider block. The text says that the
// value may come from the environment.
func settingError(diags *diag.Diagnostics, name, message string) {
	diags.AddAttributeError(path.Root(name), "Invalid "+name, terraform.Sentence(message)+" It may also come from the environment variable "+environmentName(name)+".")
}
