package terraform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// undecidedPlacement is what a server returns before the decision.
func undecidedPlacement() *api.Placement {
	return &api.Placement{
		Kind:     api.KindPlacement,
		Metadata: api.Metadata{Name: "web", Namespace: "shop", Generation: 2, ResourceVersion: "10"},
		Status: api.PlacementStatus{ObservedGeneration: 1, Conditions: []api.Condition{
			{Type: api.ConditionScheduled, Status: api.ConditionUnknown, Reason: "Busy", Message: "still thinking"},
		}},
	}
}

func TestAwaitDecision(t *testing.T) {
	resources := objectResources(t)
	typ := schemaOf(t.Context(), resources[api.KindPlacement]).Type().TerraformType(t.Context())
	for _, test := range []struct {
		name       string
		wait       doc // the attribute
		created    bool
		polls      int // until there is a decision; 0 = never
		conditions []api.Condition
		miss       *api.NearestMiss
		severity   diag.Severity
		want       string // part of the diagnostic; "" = none
	}{
		{name: "decided after some polls", polls: 3},
		{name: "timeout on create", created: true, severity: diag.SeverityWarning, want: "No decision after 1m0s (timeouts.create). Last condition: Scheduled is Unknown, Busy: Still thinking."},
		{name: "timeout on update", severity: diag.SeverityError, want: "timeouts.update"},
		{name: "timeout, configured to fail", created: true, wait: doc{"on_timeout": "error"}, severity: diag.SeverityError, want: "No decision"},
		{name: "timeout, configured to warn", wait: doc{"on_timeout": "warning"}, severity: diag.SeverityWarning, want: "No decision"},
		{name: "no wait", wait: doc{"for": "none"}},
		{name: "nothing fits", polls: 1, severity: diag.SeverityError, want: "0 of 9 clusters fit.",
			conditions: []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Message: "nothing"}}},
		{name: "too few fit", polls: 1, severity: diag.SeverityWarning, want: "0 of 9 clusters fit.",
			conditions: []api.Condition{{Type: api.ConditionSatisfied, Status: api.ConditionFalse, Message: "1 of 2 clusters"}}},
		{name: "one constraint excludes all clusters", polls: 1, severity: diag.SeverityWarning, want: `0 of 9 clusters fit. The nearest miss: without "tier is gold" 12 more clusters would fit.`,
			conditions: []api.Condition{{Type: api.ConditionSatisfied, Status: api.ConditionFalse, Message: "1 of 2 clusters"}},
			miss:       &api.NearestMiss{Filter: "labels", On: "tier is gold", Count: 12}},
		{name: "a filter without a subject excludes all clusters", polls: 1, severity: diag.SeverityError, want: `fit. The nearest miss: 1 more cluster would fit if it were online.`,
			conditions: []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Message: "nothing"}},
			miss:       &api.NearestMiss{Filter: "state", Count: 1}},
		{name: "misconfigured", polls: 1, severity: diag.SeverityWarning, want: "Metric heat does not exist.",
			conditions: []api.Condition{{Type: api.ConditionMisconfigured, Status: api.ConditionTrue, Message: "metric heat does not exist"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			polls := 0
			within, pass := faketime.Deadline(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/explanation") {
					_ = json.NewEncoder(w).Encode(api.Explanation{Summary: "0 of 9 clusters fit", NearestMiss: test.miss})
					return
				}
				placement := undecidedPlacement()
				if polls++; polls == test.polls {
					placement.Status = api.PlacementStatus{ObservedGeneration: 2, Conditions: test.conditions, Clusters: []string{"east"}}
				} else if test.polls == 0 {
					pass()
					<-r.Context().Done()
					return
				}
				_ = json.NewEncoder(w).Encode(placement)
			}))
			defer server.Close()
			c, err := client.New(client.Options{Endpoint: server.URL, MaxRetries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(within, eventually.Limit)
			defer cancel()
			document := doc{"name": "web", "namespace": "shop"}
			if test.wait != nil {
				document["wait"] = test.wait
			}
			object, diags := resources[api.KindPlacement].Await(ctx, terraform.NewSession(c, "test", "", false), terraform.DecisionWait{
				Object: undecidedPlacement(), Plan: terraformtest.ConfigValue(t, typ, document), Created: test.created, Limit: time.Minute,
			})
			if decided := object != nil; decided != (test.polls > 0) {
				t.Errorf("decided = %v", decided)
			}
			if test.want == "" {
				if len(diags) > 0 {
					t.Errorf("diagnostics %v, want none", diags)
				}
				return
			}
			if len(diags) != 1 || diags[0].Severity() != test.severity || !strings.Contains(diags[0].Detail(), test.want) {
				t.Errorf("diagnostics %v, want %q", diags, test.want)
			}
		})
	}
}

// The reason why a workload has no clusters is given as a word and as a sentence.
func TestAwaitBinding(t *testing.T) {
	typ := schemaOf(t.Context(), objectResources(t)[api.KindWorkload]).Type().TerraformType(t.Context())
	scheduled := func(reason string) api.Condition {
		return api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: reason, Message: "nothing"}
	}
	for _, test := range []struct {
		name      string
		created   bool
		condition api.Condition
		severity  diag.Severity
		summary   string // "" = none
		want      string
	}{
		{name: "bound", condition: api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue}},
		{name: "no policy", condition: scheduled(api.ReasonNoPolicyMatched), severity: diag.SeverityError, summary: `No propagation policy for workload "shop/web"`, want: "0 of 9 clusters fit."},
		{name: "no policy on create", created: true, condition: scheduled(api.ReasonNoPolicyMatched), severity: diag.SeverityWarning, summary: `No propagation policy for workload "shop/web"`, want: "0 of 9 clusters fit."},
		{name: "no room", condition: scheduled(api.ReasonUnschedulable), severity: diag.SeverityError, summary: `No room for workload "shop/web"`, want: "0 of 9 clusters fit."},
		{name: "no cluster", condition: scheduled(api.ReasonNoClusterFit), severity: diag.SeverityError, summary: `No cluster for workload "shop/web"`, want: "0 of 9 clusters fit."},
		{
			name:      "failover is held back",
			condition: api.Condition{Type: api.ConditionFailoverHeld, Status: api.ConditionTrue, Reason: api.ReasonManyClustersLost, Message: "6 of 9 clusters are offline"},
			severity:  diag.SeverityWarning, summary: `Failover is held back for workload "shop/web"`, want: "6 of 9 clusters are offline.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			written := &api.Workload{Kind: api.KindWorkload, Metadata: api.Metadata{Name: "web", Namespace: "shop", Generation: 2, ResourceVersion: "10"}}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/explanation") {
					_ = json.NewEncoder(w).Encode(api.Explanation{Summary: "0 of 9 clusters fit"})
					return
				}
				bound := *written
				bound.Status = api.WorkloadStatus{ObservedGeneration: 2, Conditions: []api.Condition{test.condition}}
				_ = json.NewEncoder(w).Encode(&bound)
			}))
			defer server.Close()
			c, err := client.New(client.Options{Endpoint: server.URL, MaxRetries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			object, diags := resourceOf(t, api.KindWorkload).Await(t.Context(), terraform.NewSession(c, "test", "", false), terraform.DecisionWait{
				Object: written, Plan: terraformtest.ConfigValue(t, typ, validWorkload), Created: test.created, Limit: time.Minute,
			})
			if resourceOf(t, api.KindWorkload).Answered(object) != 2 {
				t.Errorf("the wait ended with %+v", object)
			}
			if test.summary == "" {
				if len(diags) > 0 {
					t.Errorf("diagnostics %v, want none", diags)
				}
				return
			}
			if len(diags) != 1 || diags[0].Severity() != test.severity || diags[0].Summary() != test.summary || !strings.Contains(diags[0].Detail(), test.want) {
				t.Errorf("diagnostics %v, want %q: %q", diags, test.summary, test.want)
			}
		})
	}
}

// The provider waits for a cluster with cloud constraints until a cloud is chosen or none fits; for a Magnum cluster it
// always waits. Earlier choices do not count for a new request.
func TestAwaitCloudAndProject(t *testing.T) {
	bound := func(status api.ConditionStatus, reason string) []api.Condition {
		return []api.Condition{{Type: api.ConditionBound, Status: status, Reason: reason, Message: "0 of 3 fit"}}
	}
	cluster := func(status api.ClusterStatus) api.Object {
		return &api.Cluster{
			Kind: api.KindCluster, Metadata: api.Metadata{Name: "east", Generation: 2, ResourceVersion: "10"},
			Spec: api.ClusterSpec{CloudConstraints: &api.CloudConstraints{LabelConstraints: []string{"location is DE"}}}, Status: status,
		}
	}
	unconstrained := &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: "east", Generation: 2, ResourceVersion: "10"}}
	magnum := func(status api.MagnumClusterStatus) api.Object {
		return &api.MagnumCluster{
			Kind: api.KindMagnumCluster, Metadata: api.Metadata{Name: "k", Namespace: "shop", Generation: 2, ResourceVersion: "10"}, Status: status,
		}
	}
	for _, test := range []struct {
		name     string
		written  api.Object
		then     []api.Object // the server's successive responses
		created  bool
		severity diag.Severity
		summary  string // "" = none
		chosen   string
	}{
		{name: "cluster without constraints", written: unconstrained},
		{
			name: "cloud chosen after the first read", written: cluster(api.ClusterStatus{}),
			then: []api.Object{cluster(api.ClusterStatus{ObservedGeneration: 2}), cluster(api.ClusterStatus{ObservedGeneration: 2, Cloud: "de", Conditions: bound(api.ConditionTrue, api.ReasonBound)})},
		},
		{
			name: "cloud chosen for an earlier generation", written: cluster(api.ClusterStatus{ObservedGeneration: 1, Cloud: "fr"}),
			then: []api.Object{cluster(api.ClusterStatus{ObservedGeneration: 2, Cloud: "de"})},
		},
		{
			name: "no cloud on create", written: cluster(api.ClusterStatus{}), created: true,
			then:     []api.Object{cluster(api.ClusterStatus{ObservedGeneration: 2, Conditions: bound(api.ConditionFalse, api.ReasonNoSuitableCloud)})},
			severity: diag.SeverityWarning, summary: `No cloud for cluster "east"`, chosen: "clouds",
		},
		{
			name: "no cloud on update", written: cluster(api.ClusterStatus{ObservedGeneration: 2, Conditions: bound(api.ConditionFalse, api.ReasonNoSuitableCloud)}),
			severity: diag.SeverityError, summary: `No cloud for cluster "east"`, chosen: "clouds",
		},
		{name: "project", written: magnum(api.MagnumClusterStatus{}), then: []api.Object{magnum(api.MagnumClusterStatus{ObservedGeneration: 2, Project: "p"})}},
		{
			name: "no project", written: magnum(api.MagnumClusterStatus{ObservedGeneration: 2, Conditions: bound(api.ConditionFalse, api.ReasonNoSuitableProject)}),
			severity: diag.SeverityError, summary: `No project for magnum_cluster "shop/k"`, chosen: "projects",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			shown := test.then
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/explanation") {
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(api.Explanation{Summary: "0 of 3 fit", NearestMiss: &api.NearestMiss{Filter: "labels", On: "a is b", Count: 2}})
					return
				}
				if len(shown) == 0 {
					t.Errorf("unexpected request for %s", r.URL)
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(shown[0])
				shown = shown[1:]
			}))
			defer server.Close()
			c, err := client.New(client.Options{Endpoint: server.URL, MaxRetries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r := objectResources(t)[test.written.ObjectKind()]
			typ := schemaOf(t.Context(), r).Type().TerraformType(t.Context())
			_, diags := r.Await(t.Context(), terraform.NewSession(c, "test", "", false), terraform.DecisionWait{
				Object: test.written, Plan: terraformtest.ConfigValue(t, typ, doc{"name": "x"}), Created: test.created, Limit: time.Minute,
			})
			if len(shown) > 0 {
				t.Errorf("the wait ended before %+v", shown[0])
			}
			if test.summary == "" {
				if len(diags) > 0 {
					t.Errorf("diagnostics %v, want none", diags)
				}
				return
			}
			detail := fmt.Sprintf(`0 of 3 fit. The nearest miss: without "a is b" 2 more %s would fit.`, test.chosen)
			if len(diags) != 1 || diags[0].Severity() != test.severity || diags[0].Summary() != test.summary || diags[0].Detail() != detail {
				t.Errorf("diagnostics %v, want %q: %q", diags, test.summary, detail)
			}
		})
	}
}
