package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/workloadidentity"
)

func TestConfiguration(t *testing.T) {
	for _, test := range []struct {
		name        string
		config      configuration
		environment map[string]string
		endpoint    string // endpoint of the session
		several     bool
		namespace   string
		want        string // part of the error
		at          string // its attribute, if it matters
	}{
		{name: "nothing", endpoint: client.DefaultEndpoint, namespace: api.DefaultNamespace},
		{name: "environment", environment: map[string]string{"SCHEDULER_ENDPOINT": "http://env", "SCHEDULER_NAMESPACE": "shop"}, endpoint: "http://env", namespace: "shop"},
		{name: "block before environment", config: configuration{Endpoint: types.StringValue("http://block")},
			environment: map[string]string{"SCHEDULER_ENDPOINT": "http://env"}, endpoint: "http://block", namespace: api.DefaultNamespace},
		{name: "several in the environment", environment: map[string]string{"SCHEDULER_ENDPOINTS": "http://a, http://b"}, endpoint: "http://a", several: true, namespace: api.DefaultNamespace},
		{name: "several in the block", config: configuration{Endpoints: texts("http://a", "http://b")},
			environment: map[string]string{"SCHEDULER_ENDPOINT": "http://env"}, endpoint: "http://a", several: true, namespace: api.DefaultNamespace},
		{name: "one in the block, several in the environment", config: configuration{Endpoint: types.StringValue("http://block")},
			environment: map[string]string{"SCHEDULER_ENDPOINTS": "http://a,http://b"}, endpoint: "http://block", namespace: api.DefaultNamespace},
		{name: "one and several in the block", config: configuration{Endpoint: types.StringValue("http://a"), Endpoints: texts("http://b")}, want: "endpoint is set"},
		{name: "one and several in the environment", environment: map[string]string{"SCHEDULER_ENDPOINT": "http://a", "SCHEDULER_ENDPOINTS": "http://b"}, want: "not both"},
		{name: "an empty one among several", config: configuration{Endpoints: texts("")}, want: "is not an address"},
		{name: "one twice", config: configuration{Endpoints: texts("http://a", "http://a")}, want: "given twice"},
		{name: "endpoint", config: configuration{Endpoint: types.StringValue("localhost")}, want: "is not an address"},
		{name: "request_timeout", config: configuration{RequestTimeout: types.StringValue("soon")}, want: `"soon" is not a duration`},
		{name: "max_retries", environment: map[string]string{"SCHEDULER_MAX_RETRIES": "many"}, want: `"many" is not a whole number`},
		{name: "namespace", config: configuration{Namespace: types.StringValue("My Shop")}, want: "lowercase letters"},
		{name: "ca_cert_file", config: configuration{CACertFile: types.StringValue("/does/not/exist")}, want: "CA certificate file", at: "ca_cert_file"},
		{name: "no certificate authority", config: configuration{CACertFile: types.StringValue("configuration_test.go")}, want: "contains no PEM certificate", at: "ca_cert_file"},
		{name: "client_cert_file", config: configuration{ClientCertFile: types.StringValue("/does/not/exist"), ClientKeyFile: types.StringValue("configuration_test.go")}, want: "/does/not/exist", at: "client_cert_file"},
		{name: "no client certificate", config: configuration{ClientCertFile: types.StringValue("configuration_test.go"), ClientKeyFile: types.StringValue("/does/not/exist")}, want: "contains no PEM certificate", at: "client_cert_file"},
		{name: "token", environment: map[string]string{"SCHEDULER_TOKEN": "abc\n"}, want: "trimspace"},
		{name: "token_source", config: configuration{TokenSource: types.StringValue("hcp_terraform")}, want: "is not available"},
		{name: "token_file", config: configuration{TokenSource: types.StringValue("file"), TokenFile: types.StringValue("/does/not/exist")}, want: "/does/not/exist", at: "token_file"},
		{name: "one of several is bad", config: configuration{Endpoints: texts("http://a", "b")}, want: `"b" is not an address`, at: "endpoints[1]"},
		{name: "one of several is bad in the environment", environment: map[string]string{"SCHEDULER_ENDPOINTS": "http://a,b"}, want: `"b" is not an address`, at: "endpoints"},
		{name: "a bad one", config: configuration{Endpoint: types.StringValue("b")}, want: `"b" is not an address`, at: "endpoint"},
		{name: "null among several", config: configuration{Endpoints: types.ListValueMust(types.StringType, []attr.Value{types.StringValue("http://a"), types.StringNull()})}, want: "must not be null", at: "endpoints[1]"},
		{name: "token_source in the environment", environment: map[string]string{"SCHEDULER_TOKEN_SOURCE": "jenkins"}, want: `"jenkins" is not one of auto`},
		{name: "token before the token of the run", environment: map[string]string{"SCHEDULER_TOKEN": "a.b", "SCHEDULER_TOKEN_SOURCE": "hcp_terraform"}, endpoint: client.DefaultEndpoint, namespace: api.DefaultNamespace},
		{name: "client_key_file", environment: map[string]string{"SCHEDULER_CLIENT_KEY_FILE": "key.pem"}, want: "needs both files", at: "client_cert_file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The tests may run in a CI system with its own tokens.
			if test.environment["SCHEDULER_TOKEN_SOURCE"] == "" && test.config.TokenSource.IsNull() {
				t.Setenv("SCHEDULER_TOKEN_SOURCE", workloadidentity.None)
			}
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			var diags diag.Diagnostics
			s, _ := test.config.session("test", "test", &diags)
			if test.want != "" {
				if !diags.HasError() || !strings.Contains(diags[0].Detail(), test.want) {
					t.Errorf("diagnostics are %v, expected %q", diags, test.want)
				}
				if with, ok := diags[0].(diag.DiagnosticWithPath); test.at != "" && (!ok || with.Path().String() != test.at) {
					t.Errorf("the error is not about %s: %v", test.at, diags)
				}
				return
			}
			if diags.HasError() {
				t.Fatal(diags)
			}
			if s.Client().Endpoint() != test.endpoint || s.Client().Several() != test.several || s.Namespace() != test.namespace {
				t.Errorf("endpoint is %s, namespace %s", s.Client().Endpoint(), s.Namespace())
			}
		})
	}
}

// What the file of a token lacks is said of that file, not of the server, which was not asked.
func TestTokenFileWithoutAToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("no token"), 0o600); err != nil {
		t.Fatal(err)
	}
	var diags diag.Diagnostics
	c := configuration{TokenSource: types.StringValue("file"), TokenFile: types.StringValue(file)}
	s, _ := c.session("test", "test", &diags)
	if s == nil {
		t.Fatal(diags)
	}
	s.Connect(t.Context(), &diags)
	if len(diags) != 1 || diags[0].Summary() != "There is no token" || !strings.Contains(diags[0].Detail(), "SCHEDULER_TOKEN_FILE") {
		t.Errorf("diagnostics are %v", diags)
	}
	if with, ok := diags[0].(diag.DiagnosticWithPath); !ok || with.Path().String() != "token_file" {
		t.Errorf("the error is not about the file: %v", diags)
	}
}

// What a token makes meaningless is warned of.
func TestTokenAndTokenSource(t *testing.T) {
	var diags diag.Diagnostics
	both := configuration{Token: types.StringValue("a.b"), TokenSource: types.StringValue("github_actions"), TokenFile: types.StringValue("/does/not/exist")}
	if s, _ := both.session("test", "test", &diags); s == nil || len(diags) != 2 || diags[0].Summary() != "token_source is not used" || diags[1].Summary() != "token_file is not used" {
		t.Errorf("diagnostics are %v", diags)
	}
}

func texts(elements ...string) types.List {
	values := make([]attr.Value, len(elements))
	for i, element := range elements {
		values[i] = types.StringValue(element)
	}
	return types.ListValueMust(types.StringType, values)
}

// A provider whose configuration is only known after apply fails when it is used, and not before.
func TestUnknownConfiguration(t *testing.T) {
	var diags diag.Diagnostics
	c := configuration{Token: types.StringUnknown()}
	s, _ := c.session("test", "test", &diags)
	if diags.HasError() {
		t.Fatal(diags)
	}
	if s.Connected(&diags) || !strings.Contains(diags[0].Detail(), `"token"`) {
		t.Errorf("diagnostics are %v", diags)
	}
}
