package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// openStack starts a stand-in for an OpenStack with projects and Magnum, and returns the access to it. Its only user is
// scheduler with the password secret.
func openStack(t *testing.T) *api.OpenStackSpec {
	t.Helper()
	answer := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	endpoint := func(serviceType, path string) doc {
		return doc{"type": serviceType, "name": serviceType, "endpoints": list{doc{
			"id": serviceType, "interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": server.URL + path,
		}}}
	}
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, r *http.Request) {
		var login struct {
			Auth struct {
				Identity struct {
					Password struct {
						User struct{ Name, Password string }
					}
				}
			}
		}
		user := &login.Auth.Identity.Password.User
		if err := json.NewDecoder(r.Body).Decode(&login); err != nil || user.Name != "scheduler" || user.Password != "secret" {
			answer(w, http.StatusUnauthorized, doc{"error": doc{"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}})
			return
		}
		w.Header().Set("X-Subject-Token", "token")
		answer(w, http.StatusCreated, doc{"token": doc{
			"methods": list{"password"}, "expires_at": "2099-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z",
			"user":    doc{"id": "u", "name": "scheduler", "domain": doc{"id": "default", "name": "Default"}},
			"project": doc{"id": "admin", "name": "admin", "domain": doc{"id": "default", "name": "Default"}},
			"roles":   list{doc{"id": "r", "name": "admin"}},
			"catalog": list{endpoint("identity", "/v3"), endpoint("container-infra", "/magnum/v1")},
		}})
	})
	mux.HandleFunc("GET /v3/projects", func(w http.ResponseWriter, r *http.Request) {
		all := []doc{
			{"id": "2", "name": "web", "domain_id": "default", "parent_id": "default", "enabled": true, "description": "the shop", "tags": list{"shop", "scheduler"}},
			{"id": "1", "name": "batch", "domain_id": "default", "enabled": true, "tags": list{}},
			{"id": "3", "name": "old", "domain_id": "default", "enabled": false, "tags": list{}},
		}
		projects := []doc{}
		for _, p := range all {
			if wanted := r.URL.Query().Get("enabled"); wanted == "" || wanted == fmt.Sprint(p["enabled"]) {
				projects = append(projects, p)
			}
		}
		answer(w, http.StatusOK, doc{"projects": projects})
	})
	mux.HandleFunc("GET /magnum/v1/clustertemplates", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, doc{"clustertemplates": list{doc{
			"uuid": "t", "name": "k8s", "public": true, "coe": "kubernetes", "flavor_id": "small", "labels": doc{"kube_tag": "v1.34.1"},
		}}})
	})
	mux.HandleFunc("GET /magnum/v1/clusters/detail", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, doc{"clusters": list{doc{"uuid": "a", "project_id": "2"}, doc{"uuid": "b", "project_id": "2"}}})
	})
	return &api.OpenStackSpec{
		AuthURL: server.URL + "/v3", Username: "scheduler", Password: api.NewSecret("secret"), ProjectName: "admin",
		Regions: []string{"RegionOne"}, Timeout: "5s", Interval: "1h",
	}
}

// Documents in the form of OpenStack's responses.
type (
	doc  = map[string]any
	list = []any
)

func TestAccOpenStackProjects(t *testing.T) {
	f := newFleet(t)
	access := openStack(t)
	wrong := *access
	wrong.Password = api.NewSecret("a wrong one")
	f.put(&api.Cloud{Metadata: api.Metadata{Name: "de"}, Spec: api.CloudSpec{OpenStack: access}})
	f.put(&api.Cloud{Metadata: api.Metadata{Name: "closed"}, Spec: api.CloudSpec{OpenStack: &wrong}})
	f.put(&api.Cloud{Metadata: api.Metadata{Name: "pushed"}})
	projects := func(i int, name string) tfjsonpath.Path {
		return tfjsonpath.New("projects").AtSliceIndex(i).AtMapKey(name)
	}
	template := func(name string) tfjsonpath.Path { return tfjsonpath.New("templates").AtSliceIndex(0).AtMapKey(name) }
	ask := func(cloud, more string) string {
		return f.config(fmt.Sprintf("data \"scheduler_openstack_projects\" \"it\" {\n cloud = %q\n %s\n}", cloud, more))
	}
	const it = "data.scheduler_openstack_projects.it"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{ // the last one is destroyed
			{Config: ask("nowhere", ""), ExpectError: regexp.MustCompile(`(?s)Cannot read the OpenStack projects of a cloud.*nowhere`)},
			{Config: ask("pushed", ""), ExpectError: regexp.MustCompile(`(?s)Cannot read the OpenStack projects of a cloud.*credentials`)},
			{Config: ask("closed", ""), ExpectError: regexp.MustCompile(`(?s)Cannot read the OpenStack projects of a cloud.*password`)},
			{Config: ask("De", ""), ExpectError: regexp.MustCompile(`(?s)Invalid cloud`)},
			{
				Config: ask("de", ""),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(it, tfjsonpath.New("projects"), knownvalue.ListSizeExact(2)),
					statecheck.ExpectKnownValue(it, projects(0, "name"), knownvalue.StringExact("batch")),
					statecheck.ExpectKnownValue(it, projects(1, "tags"), names("scheduler", "shop")),
					statecheck.ExpectKnownValue(it, projects(1, "clusters"), knownvalue.Int64Exact(2)),
					statecheck.ExpectKnownValue(it, template("labels").AtMapKey("kube_tag"), knownvalue.StringExact("v1.34.1")),
					statecheck.ExpectKnownValue(it, template("region"), knownvalue.StringExact("RegionOne")),
				},
			},
			{
				Config:            ask("de", `tags = ["shop"]`),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(it, projects(0, "id"), knownvalue.StringExact("2"))},
			},
			{
				Config:            ask("de", `disabled = true`),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(it, projects(0, "name"), knownvalue.StringExact("old"))},
			},
		},
	})
}
