package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
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
