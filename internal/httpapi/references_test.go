package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// messageOf returns the message of a condition in a response, or "" if it is missing.
func messageOf(t *testing.T, a answer, conditionType string) string {
	t.Helper()
	var object struct {
		Status struct{ Conditions []api.Condition }
	}
	if err := json.Unmarshal(a.body, &object); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	if c := api.FindCondition(object.Status.Conditions, conditionType); c != nil {
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return ""
}

// TestDanglingReferencesAreConditions checks that a missing object is reported from the response to the write on, until
// it exists.
func TestDanglingReferencesAreConditions(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	for _, c := range []struct {
		path, body, conditionType, want string
		createPath, create              string
	}{
		{
			"/v1/clusters/zone", `{"spec":{"openstack":{"cloud":"gone","region":"r","availability_zone":"z"}}}`, api.ConditionReferencesResolved,
			`False UnknownReference: openstack.cloud names cloud "gone", which does not exist`, "/v1/clouds/gone", `{"spec":{}}`,
		},
		{
			"/v1/clusters/rated", `{"spec":{"metrics":[{"name":"absent","weight":1}]}}`, api.ConditionMetricsAvailable,
			`False UnknownMetric: metric "absent" is not available: UnknownMetric (metric "absent" does not exist)`, "", "",
		},
		{
			"/v1/clouds/rated", `{"spec":{"metrics":[{"name":"absent","weight":1}]}}`, api.ConditionMetricsAvailable,
			`False UnknownMetric: metric "absent" is not available: UnknownMetric (metric "absent" does not exist)`, "", "",
		},
		{
			"/v1/cluster-sets/set", `{"spec":{"clusters":["a","b","c","d","rated"]}}`, api.ConditionReferencesResolved,
			`False UnknownReference: clusters[0] names cluster "a", which does not exist; clusters[1] names cluster "b", which does not exist; clusters[2] names cluster "c", which does not exist; and 1 more`, "", "",
		},
		{
			"/v1/namespaces/shop/placements/web", `{"spec":{"cluster_sets":["none"]}}`, api.ConditionReferencesResolved,
			`False UnknownReference: cluster_sets[0] names cluster_set "none", which does not exist, or belongs to another namespace`, "/v1/cluster-sets/none", `{"spec":{"clusters":["rated"]}}`,
		},
		{
			"/v1/propagation-policies/idle", `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`, api.ConditionWorkloadsSelected,
			`False NothingSelected: no workload follows the policy: resource_selectors match none, or other policies have claimed those that they match`,
			"/v1/namespaces/shop/workloads/web", `{"spec":{"api_version":"apps/v1","kind":"Deployment"}}`,
		},
	} {
		if got := messageOf(t, s.mustPut(c.path, c.body), c.conditionType); got != c.want {
			t.Errorf("%s: the answer to the write has the message %q, want %q", c.path, got, c.want)
		}
		if got := messageOf(t, s.do(http.MethodGet, c.path, ""), c.conditionType); got != c.want {
			t.Errorf("%s: the read has the message %q", c.path, got)
		}
		if c.createPath != "" {
			s.mustPut(c.createPath, c.create)
			if got := messageOf(t, s.do(http.MethodGet, c.path, ""), c.conditionType); got != "" {
				t.Errorf("%s: after %s, the message is still %q", c.path, c.createPath, got)
			}
		}
	}
}

// TestDanglingReferencesHideOtherNamespaces checks that an object in another namespace is reported as missing, and that
// errors of its metrics are not shown outside it.
func TestDanglingReferencesHideOtherNamespaces(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	closed := "http://127.0.0.1:9/stock-secret-path"
	s.mustPut("/v1/clusters/theirs", `{"spec":{"namespace":"stock"}}`)
	s.mustPut("/v1/namespaces/stock/metrics-providers/p", fmt.Sprintf(`{"spec":{"type":"prometheus","prometheus":{"url":%q}}}`, closed))
	s.mustPut("/v1/namespaces/stock/metrics/m", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"x"}}}`)
	s.mustPut("/v1/clusters/shared", `{"spec":{"metrics":[{"name":"m","namespace":"stock","weight":1}]}}`)
	policy := "/v1/namespaces/shop/propagation-policies/p"
	for _, name := range []string{"theirs", "nobodys"} {
		s.mustPut(policy, fmt.Sprintf(`{"spec":{"resource_selectors":[{"api_version":"v1","kind":"X"}],"placement":{"cluster_affinity":{"cluster_names":[%q]}}}}`, name))
	}
	s.mustPut("/v1/cluster-sets/set", `{"spec":{"clusters":["theirs","nobodys"]}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	admin := s.addToken(auth.RoleAdmin)
	s.token = s.addToken(auth.RoleViewer, "shop")
	of := func(name string) string {
		s.token, admin = admin, s.token
		s.mustPut(policy, fmt.Sprintf(`{"spec":{"resource_selectors":[{"api_version":"v1","kind":"X"}],"placement":{"cluster_affinity":{"cluster_names":[%q]}}}}`, name))
		s.token, admin = admin, s.token
		return strings.ReplaceAll(messageOf(t, s.do(http.MethodGet, policy, ""), api.ConditionReferencesResolved), name, "NAME")
	}
	if theirs, nobodys := of("theirs"), of("nobodys"); theirs == "" || theirs != nobodys {
		t.Errorf("the message is %q for a cluster of another namespace, but %q for a missing one", theirs, nobodys)
	}
	if got := messageOf(t, s.do(http.MethodGet, "/v1/cluster-sets/set", ""), api.ConditionReferencesResolved); strings.Count(got, "which does not exist, or belongs") != 2 {
		t.Errorf("message of the set %q", got)
	}
	for _, path := range []string{"/v1/clusters/shared", "/v1/namespaces/shop/placements/web", "/v1/namespaces/shop/placements/web/explanation"} {
		a := s.do(http.MethodGet, path, "")
		if a.StatusCode != http.StatusOK || strings.Contains(string(a.body), "refused") || strings.Contains(string(a.body), "secret-path") {
			t.Errorf("%s: unexpected answer %d %s", path, a.StatusCode, a.body)
		}
	}
}

// TestSentencesSayWhyAMetricFails checks that a placement without a cluster says why.
func TestSentencesSayWhyAMetricFails(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	s.mustPut("/v1/metrics-providers/p", `{"spec":{"type":"prometheus","prometheus":{"url":"http://127.0.0.1:9"}}}`)
	s.mustPut("/v1/metrics/load", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"x"}}}`)
	for _, name := range []string{"a", "b"} {
		s.mustPut("/v1/clusters/"+name, `{"spec":{"metrics":[{"name":"load","weight":1}]}}`)
	}
	got := messageOf(t, s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`), api.ConditionScheduled)
	for _, want := range []string{`0 of 2 clusters fit: 2 have a failing metric ("load": `, "connection refused"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
