package provider

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// The split is unknown if the replicas by cluster are, or if they are split differently. The replicas by cluster are
// not unknown if only the split changes. Without a distribution there is no split.
func TestPlanDistribution(t *testing.T) {
	state := func(changes doc) doc {
		s := doc{
			"name": "web", "namespace": "shop", "api_version": "apps/v1", "kind": "Deployment", "replicas": 3, "priority": 0,
			"distribution": doc{"mode": "custom", "custom_on_demand": "1"},
			"clusters":     doc{"member1": 2, "member2": 1}, "evicting": doc{},
			"on_demand": doc{"member1": 1, "member2": 0}, "spot": doc{"member1": 1, "member2": 1},
		}
		maps.Copy(s, changes)
		return s
	}
	bound := doc{"clusters": doc{"member1": 2, "member2": 1}}
	stays := doc{"clusters": doc{"member1": 2, "member2": 1}, "on_demand": doc{"member1": 1, "member2": 0}, "spot": doc{"member1": 1, "member2": 1}}
	moves := doc{"clusters": unknown{}, "on_demand": unknown{}, "spot": unknown{}}
	resplits := doc{"clusters": bound["clusters"], "on_demand": unknown{}, "spot": unknown{}}
	none := doc{"clusters": bound["clusters"], "on_demand": nil, "spot": nil}
	custom := func(amount string) doc { return doc{"mode": "custom", "custom_on_demand": amount} }
	unsplit := state(doc{"distribution": nil, "on_demand": nil, "spot": nil})
	for _, test := range []struct {
		name         string
		distribution any
		config       doc
		state        doc
		want         doc
	}{
		{"created", custom("1"), nil, nil, moves},
		{"created with the default", doc{}, nil, nil, moves},
		{"created without", nil, nil, nil, doc{"clusters": unknown{}, "on_demand": nil, "spot": nil}},
		{"created with a value known after apply", unknown{}, nil, nil, moves},
		{"no change", custom("1"), nil, state(nil), stays},
		{"how long to wait", custom("1"), doc{"wait": doc{"for": "none"}}, state(nil), stays},
		{"another amount", custom("2"), nil, state(nil), resplits},
		{"a percentage", custom("50%"), nil, state(nil), resplits},
		{"another mode", doc{"mode": "all_in_spot"}, nil, state(nil), resplits},
		{"the default", doc{}, nil, state(nil), resplits},
		{"known after apply", unknown{}, nil, state(nil), resplits},
		{"no longer split", nil, nil, state(nil), none},
		{"split from now on", doc{}, nil, unsplit, resplits},
		{"default removed outside Terraform", doc{}, nil, unsplit, resplits},
		{"never split", nil, nil, unsplit, none},
		{"more replicas", custom("1"), doc{"replicas": 4}, state(nil), moves},
		{"more replicas, never split", nil, doc{"replicas": 4}, unsplit, doc{"clusters": unknown{}, "on_demand": nil, "spot": nil}},
		{"a label", custom("1"), doc{"labels": doc{"team": "a"}}, state(nil), moves},
		{"not decided yet", custom("1"), nil, state(doc{"clusters": doc{}, "on_demand": doc{}, "spot": doc{}}), doc{"on_demand": doc{}, "spot": doc{}}},
		{"a state of an older version", doc{}, nil, state(doc{"distribution": doc{}, "on_demand": nil, "spot": nil}), doc{"on_demand": nil, "spot": nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types["scheduler_workload"]
			config := maps.Clone(valid["scheduler_workload"])
			maps.Copy(config, test.config)
			later := test.distribution == (unknown{})
			if !later {
				config[distribution] = test.distribution
			}
			value := terraformtest.ConfigValue(t, typ, config)
			if later {
				value = withUnknown(value, distribution, false)
			}
			plansAs(t, typ, planOf(t, "scheduler_workload", value, test.state), test.want)
		})
	}
}

// If a preview says how many replicas each cluster gets, the plan computes their split with the server's rules, also
// for a new workload.
func TestPlanSplitOfPreview(t *testing.T) {
	typ := newValidation(t).types["scheduler_workload"]
	for _, test := range []struct {
		name            string
		clusters        doc
		replicas        any
		distribution    doc
		onDemand, spots any
	}{
		{"a count over all clusters", doc{"b": 3, "a": 4, "c": 3}, 10, doc{"mode": "custom", "custom_on_demand": "3"}, doc{"a": 1, "b": 1, "c": 1}, doc{"a": 3, "b": 2, "c": 2}},
		{"a percentage in each", doc{"a": 3, "b": 2}, 5, doc{"mode": "custom", "custom_on_demand": "34%"}, doc{"a": 2, "b": 1}, doc{"a": 1, "b": 1}},
		{"copies", doc{"a": 3, "b": 3}, 3, doc{"mode": "custom", "custom_on_demand": "2"}, doc{"a": 2, "b": 2}, doc{"a": 1, "b": 1}},
		{"the default", doc{"a": 3}, 3, doc{}, doc{"a": 0}, doc{"a": 3}},
		{"no cluster", doc{}, 3, doc{}, doc{}, doc{}},
		{"not replicated", doc{"a": 0}, nil, doc{}, unknown{}, unknown{}},
		{"not split", doc{"a": 3}, 3, nil, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := terraform.AttributesOf(terraformtest.ConfigValue(t, typ, doc{
				"name": "web", "api_version": "apps/v1", "kind": "Deployment", "replicas": test.replicas, "clusters": test.clusters, distribution: test.distribution,
			}))
			if test.distribution == nil {
				plan[distribution] = tftypes.NewValue(plan[distribution].Type(), nil)
			}
			if err := planSplit(plan, nil, true); err != nil {
				t.Fatal(err)
			}
			plansAs(t, typ, plan, doc{"on_demand": test.onDemand, "spot": test.spots})
		})
	}
}

// warningsOf returns the warnings about a configuration, by attribute.
func (v *validation) warningsOf(t *testing.T, resourceType string, config tftypes.Value) map[string]string {
	t.Helper()
	value, err := tfprotov6.NewDynamicValue(v.types[resourceType], config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := v.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resourceType, Config: &value,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	warnings := map[string]string{}
	for _, d := range resp.Diagnostics {
		if d.Severity != tfprotov6.DiagnosticSeverityWarning {
			t.Errorf("not a warning: %s: %s", d.Summary, d.Detail)
			continue
		}
		warnings[renderPath(d.Attribute)] = d.Summary + ": " + d.Detail
	}
	return warnings
}

// Probably unintended settings cause a warning at the attribute. Unknown values cause none.
func TestSuspiciousConfigurationsWarn(t *testing.T) {
	v := newValidation(t)
	cluster := func(spot, kubernetes doc) doc {
		config := doc{"name": "east"}
		if spot != nil {
			config["spot"] = spot
		}
		if kubernetes != nil {
			config["kubernetes"] = kubernetes
		}
		return config
	}
	workload := func(replicas any, mode, amount any) doc {
		config := maps.Clone(valid["scheduler_workload"])
		config["replicas"], config[distribution] = replicas, doc{"mode": mode, "custom_on_demand": amount}
		return config
	}
	kubeconfig := strings.Replace(kubeconfigThatRunsPrograms, "exec: {command: aws}", "token: t", 1)
	for _, test := range []struct {
		name         string
		resourceType string
		config       doc
		unknown      string // attribute that is known only after apply
		at, want     string // "" = no warning
	}{
		{"no kubeconfig", "scheduler_cluster", cluster(doc{"enabled": true}, nil), "", "spot.enabled", "kubernetes.kubeconfig"},
		{"an empty block", "scheduler_cluster", cluster(doc{"enabled": true}, doc{}), "", "spot.enabled", "kubernetes.kubeconfig"},
		{"a kubeconfig", "scheduler_cluster", cluster(doc{"enabled": true}, doc{"kubeconfig_wo": kubeconfig}), "", "", ""},
		{"a kubeconfig known after apply", "scheduler_cluster", cluster(doc{"enabled": true}, nil), "kubernetes", "", ""},
		{"not enabled", "scheduler_cluster", cluster(doc{"enabled": false}, nil), "", "", ""},
		{"attribute omitted", "scheduler_cluster", cluster(doc{}, nil), "", "", ""},
		{"enabled known after apply", "scheduler_cluster", cluster(nil, nil), "spot", "", ""},

		{"more than exist", "scheduler_workload", workload(3, "custom", "5"), "", "distribution.custom_on_demand", "5 of 3 replicas"},
		{"more than none", "scheduler_workload", workload(0, "custom", "1"), "", "distribution.custom_on_demand", "1 of 0 replicas"},
		{"all", "scheduler_workload", workload(3, "custom", "3"), "", "", ""},
		{"a percentage", "scheduler_workload", workload(3, "custom", "100%"), "", "", ""},
		{"another mode", "scheduler_workload", workload(3, "all_in_spot", "5"), "", "", ""},
		{"not replicated", "scheduler_workload", workload(nil, "custom", "5"), "", "", ""},
		{"replicas known after apply", "scheduler_workload", workload(3, "custom", "5"), "replicas", "", ""},
		{"a distribution known after apply", "scheduler_workload", workload(3, "custom", "5"), distribution, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := terraformtest.ConfigValue(t, v.types[test.resourceType], test.config)
			if test.unknown != "" {
				config = withUnknown(config, test.unknown, false)
			}
			warnings := v.warningsOf(t, test.resourceType, config)
			if test.want == "" && len(warnings) > 0 || test.want != "" && !strings.Contains(warnings[test.at], test.want) {
				t.Errorf("warnings are %v, expected %q at %q", warnings, test.want, test.at)
			}
		})
	}
}

// The split workloads of a cluster are shown with everything that was observed, and optionally only those of one
// namespace.
func TestClusterDistributions(t *testing.T) {
	split := []api.DistributedWorkload{
		{
			Kind: api.KindDeployment, Namespace: "shop", Name: "web", Source: api.DistributionOfWorkload,
			ClusterDistribution: api.ClusterDistribution{
				Cluster: "east", Replicas: 5, Mode: api.ModeCustom, TargetOnDemand: 2, TargetSpot: 3, OnDemand: 3, Spot: 2,
				State: api.DistributionReplacing, Message: "pod web-1 is replaced", Replaced: 1,
			},
		},
		{Kind: api.KindStatefulSet, Namespace: "bank", Name: "ledger", Source: api.DistributionOfLabels},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/clusters/east/distributions":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"items": split})
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(api.Problem{Type: api.ProblemSpotDisabled, Title: "Conflict", Status: http.StatusConflict, Detail: "spot is not enabled for the cluster"})
		}
	}))
	defer server.Close()
	c, err := client.New(client.Options{Endpoint: server.URL, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	source, ok := newClusterDistributionsDataSource().(*terraform.DataSource)
	if !ok {
		t.Fatal("not a readDataSource")
	}
	names := func(document doc) (names []string) {
		workloads, _ := document["workloads"].(list)
		for _, w := range workloads {
			one, _ := w.(doc)
			name, _ := one["name"].(string)
			names = append(names, name)
		}
		return names
	}
	for namespace, want := range map[string]string{"": "web ledger", "shop": "web", "office": ""} {
		document, err := source.Ask(t.Context(), terraform.NewSession(c, "test", "", false), map[string]any{"cluster": "east", "namespace": namespace})
		if got := strings.Join(names(document), " "); err != nil || got != want {
			t.Errorf("in namespace %q there are %q, expected %q: %v", namespace, got, want, err)
		}
	}
	document, err := source.Ask(t.Context(), terraform.NewSession(c, "test", "", false), map[string]any{"cluster": "east", "namespace": "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for name, attribute := range source.Answer {
		if _, err := terraform.Value(attribute.GetType().TerraformType(t.Context()), document[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	config := terraformtest.ConfigValue(t, schemaOfSource(t, source), doc{"cluster": "west"})
	resp := datasource.ReadResponse{}
	source.Configure(t.Context(), datasource.ConfigureRequest{ProviderData: terraform.NewSession(c, "test", "", false)}, &datasource.ConfigureResponse{})
	source.Read(t.Context(), datasource.ReadRequest{Config: tfsdk.Config{Raw: config}}, &resp)
	if len(resp.Diagnostics) != 1 {
		t.Fatalf("a cluster without spot has distributions: %v", resp.Diagnostics)
	}
	if text := resp.Diagnostics[0].Detail(); !strings.Contains(text, "spot is not enabled") || strings.Contains(text, "plan again") {
		t.Errorf("the error is %q, expected one without the advice for colliding writes", text)
	}
}

// schemaOfSource returns the type of a data source's values.
func schemaOfSource(t *testing.T, source datasource.DataSource) tftypes.Type {
	t.Helper()
	var resp datasource.SchemaResponse
	source.Schema(t.Context(), datasource.SchemaRequest{}, &resp)
	return resp.Schema.Type().TerraformType(t.Context())
}
