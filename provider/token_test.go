package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// createToken creates a token on a server that has none.
func createToken(t *testing.T, endpoint, body string) string {
	t.Helper()
	return createTokenAs(t, endpoint, createTokenAs(t, endpoint, "", `{"role":"admin"}`), body)
}

// createTokenAs creates a token with another one, or without if there is none yet.
func createTokenAs(t *testing.T, endpoint, by, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/v1/tokens", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if by != "" {
		req.Header.Set("Authorization", "Bearer "+by)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("no token in the answer (%s): %v", resp.Status, err)
	}
	return answer.Token
}

// A server with tokens requires one.
func TestAccToken(t *testing.T) {
	f := newFleet(t)
	token := createToken(t, f.endpoint, `{"role":"editor"}`)
	config := func(token string) string {
		return fmt.Sprintf(`
			provider "scheduler" {
			  endpoint = %q
			  token    = %q
			}
			resource "scheduler_cluster" "east" { name = "east" }`, f.endpoint, token)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config(""), ExpectError: regexp.MustCompile(`(?s)rejects the token.*SCHEDULER_TOKEN`)},
			{Config: config("wrong"), ExpectError: regexp.MustCompile(`SCHEDULER_TOKEN`)},
			{Config: config(token)},
		},
	})
}

// A configuration cannot refer to objects that its token may not read: the error is reported at the attribute.
func TestAccForbiddenReference(t *testing.T) {
	f := newFleet(t)
	config := func(token, metric string) string {
		return fmt.Sprintf(`
			provider "scheduler" {
			  endpoint = %q
			  token    = %q
			}
			resource "scheduler_cluster" "east" {
			  name      = "east"
			  namespace = "shop"
			  metrics   = [{ name = "load", namespace = %q }]
			}`, f.endpoint, token, metric)
	}
	token := createToken(t, f.endpoint, `{"role":"editor","namespaces":["shop"]}`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config(token, "vault"), ExpectError: regexp.MustCompile(`(?s)Forbidden metrics\[0\]\.name.*on .*line.*vault/load.*must\s+not\s+read.*token does\s+not\s+allow`)},
			{Config: config(token, "shop")},
		},
	})
}

// A token for the run is given to another provider, and is revoked when the run ends. It is in no state.
func TestAccEphemeralToken(t *testing.T) {
	f := newFleet(t)
	admin := createTokenAs(t, f.endpoint, "", `{"role":"admin"}`)
	config := func(attributes string) string {
		return fmt.Sprintf(`
			provider "scheduler" {
			  endpoint = %q
			  token    = %q
			}
			ephemeral "scheduler_token" "run" {
			%s
			}
			provider "echo" { data = ephemeral.scheduler_token.run }
			resource "echo" "seen" {}`, f.endpoint, admin, attributes)
	}
	seen := func(name string) tfjsonpath.Path { return tfjsonpath.New("data").AtMapKey(name) }
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks: []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_10_0)},
		ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
			"scheduler": factories["scheduler"], "echo": echoprovider.NewProviderServer(),
		},
		Steps: []resource.TestStep{
			{Config: config(`role = "king"`), ExpectError: regexp.MustCompile(`(?s)role.*king`)},
			{Config: config("role = \"viewer\"\nlifetime = \"soon\""), ExpectError: regexp.MustCompile(`(?s)lifetime.*soon`)},
			{Config: config("role = \"viewer\"\nlifetime = \"1s\""), ExpectError: regexp.MustCompile(`(?s)lifetime.*at\s+least`)},
			{
				Config: config("role = \"viewer\"\nnamespaces = [\"shop\"]\nlifetime = \"10m\"\ndescription = \"of a run\""),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("echo.seen", seen("role"), knownvalue.StringExact("viewer")),
					statecheck.ExpectKnownValue("echo.seen", seen("token"), knownvalue.StringRegexp(regexp.MustCompile(`^[a-z0-9]+\.`))),
					statecheck.ExpectKnownValue("echo.seen", seen("expires_at"), knownvalue.NotNull()),
				},
			},
		},
	})
	c, err := client.New(client.Options{Endpoint: f.endpoint, Token: api.NewSecret(admin)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var tokens struct{ Items []struct{ Role string } }
	if err := c.Call(f.ctx(), http.MethodGet, "/v1/tokens", nil, &tokens); err != nil {
		t.Fatal(err)
	}
	if len(tokens.Items) != 1 || tokens.Items[0].Role != "admin" {
		t.Errorf("tokens that are left: %+v, want that of the administrator alone", tokens.Items)
	}
}
