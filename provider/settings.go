package provider

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/workloadidentity"
)

// settings are the values of the provider block, completed from the environment. An empty text is a
// setting that is set in neither of them.
type settings struct {
	text  map[string]string // by name of the setting
	diags *diag.Diagnostics // receives what is wrong with them
}

// settings returns the settings of the provider block. unknown is the name of a setting whose value
// is not known yet; "" = all are known.
func (c *configuration) settings(diags *diag.Diagnostics) (given settings, unknown string) {
	given = settings{text: map[string]string{}, diags: diags}
	anyEndpoint := !c.Endpoint.IsNull() || !c.Endpoints.IsNull()
	for _, s := range []struct {
		name  string
		value types.String
	}{
		{"endpoint", c.Endpoint},
		{"endpoints", listString(c.Endpoints)},
		{"token", c.Token},
		{"token_source", c.TokenSource},
		{"token_audience", c.TokenAudience},
		{"token_file", c.TokenFile},
		{"ca_cert_file", c.CACertFile},
		{"client_cert_file", c.ClientCertFile},
		{"client_key_file", c.ClientKeyFile},
		{"namespace", c.Namespace},
		{"request_timeout", c.RequestTimeout},
		{"max_retries", numberString(c.MaxRetries)},
		{"check_connection", boolString(c.CheckConnection)},
		{"warn_unsatisfied", boolString(c.WarnUnsatisfied)},
	} {
		if s.value.IsUnknown() {
			return given, s.name
		}
		given.text[s.name] = s.value.ValueString()
		// If the configuration sets endpoint or endpoints, the environment variables of both are
		// ignored.
		if s.value.IsNull() && (!anyEndpoint || !strings.HasPrefix(s.name, "endpoint")) {
			given.text[s.name] = os.Getenv(environmentName(s.name))
		}
	}
	return given, ""
}

// requestTimeout returns the time limit for requests; 0 = the default.
func (s settings) requestTimeout() time.Duration {
	text := s.text["request_timeout"]
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		settingError(s.diags, "request_timeout", fmt.Sprintf("%q is not a duration above 0: write a number with a unit, such as \"30s\" or \"2m\"", text))
	}
	return d
}

// maxRetries returns the number of retries as client.Options has it: 0 = the default, negative =
// none.
func (s settings) maxRetries() int {
	text := s.text["max_retries"]
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		settingError(s.diags, "max_retries", fmt.Sprintf("%q is not a whole number of at least 0", text))
	}
	if n == 0 {
		return -1
	}
	return n
}

// token returns the bearer token.
func (s settings) token() api.Secret {
	text := s.text["token"]
	if strings.ContainsAny(text, "\r\n\x00") {
		settingError(s.diags, "token", "a token has no line breaks; one that is read from a file may end with one: write trimspace(file(…))")
	}
	return api.NewSecret(text)
}

// identity returns the identity of the run, which is used if there is no token; nil = it has none.
func (s settings) identity() *workloadidentity.Identity {
	if s.text["token"] != "" {
		return nil
	}
	identity, err := workloadidentity.Find(workloadidentity.Options{
		Source: s.text["token_source"], Audience: s.text["token_audience"], File: s.text["token_file"],
		Getenv: os.Getenv, Now: time.Now,
	})
	if err != nil {
		settingError(s.diags, "token_source", err.Error())
	}
	return identity
}

// namespace returns the namespace of objects that do not set one.
func (s settings) namespace() string {
	name := s.text["namespace"]
	if name == "" {
		return api.DefaultNamespace
	}
	if message := terraform.WrongName(name); message != "" {
		settingError(s.diags, "namespace", message)
	}
	return name
}

// flag returns a boolean setting; unset is its default.
func (s settings) flag(name string, unset bool) bool {
	value := s.text[name]
	if value == "" {
		return unset
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		settingError(s.diags, name, fmt.Sprintf("%q is neither true nor false", value))
	}
	return b
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

func boolString(b types.Bool) types.String {
	switch {
	case b.IsUnknown():
		return types.StringUnknown()
	case b.IsNull():
		return types.StringNull()
	}
	return types.StringValue(strconv.FormatBool(b.ValueBool()))
}

// settingError reports an error for an attribute of the provider block. The text says that the
// value may come from the environment.
func settingError(diags *diag.Diagnostics, name, message string) {
	diags.AddAttributeError(path.Root(name), "Invalid "+name, terraform.Sentence(message)+" It can also be set in the environment variable "+environmentName(name)+".")
}
