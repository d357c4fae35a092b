package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// A plan says which secrets the server will have afterwards, warns if there will be fewer, and fails where the server
// would.
func TestPlanSecrets(t *testing.T) {
	with := func(base doc, more doc) doc {
		all := maps.Clone(base)
		maps.Copy(all, more)
		return all
	}
	settled := doc{"interval": "15s", "timeout": "20s", "insecure_skip_verify": false}
	prom := doc{"name": "p", "type": "prometheus", "prometheus": doc{"url": "https://p:9090"}}
	none := doc{"bearer_token_stored": false, "headers_stored": list{}}
	stored := with(with(prom, settled), doc{"bearer_token_stored": true, "headers_stored": list{"A", "B"}, "bearer_token_wo_version": 1, "headers_wo_version": 1})
	same := doc{"bearer_token_wo_version": 1, "headers_wo_version": 1}
	both := doc{"bearer_token_stored": true, "headers_stored": list{"A", "B"}}
	elsewhere := doc{"prometheus": doc{"url": "https://evil:9090"}}
	for _, test := range []struct {
		name          string
		config, state doc
		want          doc
		warnings      []string
		errors        []string // attributes with an error
	}{
		{"created without", prom, nil, none, nil, nil},
		{"created with", with(prom, doc{"bearer_token_wo": "t", "headers_wo": doc{"A": "a"}}), nil, doc{"bearer_token_stored": true, "headers_stored": list{"A"}}, nil, nil},
		{"left out", with(prom, same), stored, both, nil, nil},
		{"omitted, label added", with(prom, with(same, doc{"labels": doc{"a": "b"}})), stored, both, nil, nil},
		{"omitted, version removed", prom, stored, both, nil, nil},
		{"a first version", with(prom, doc{"bearer_token_wo_version": 1}), with(stored, doc{"bearer_token_wo_version": nil}), both, nil, nil},
		{"new version without a value", with(prom, doc{"bearer_token_wo_version": 2, "headers_wo_version": 2}), stored, doc{}, nil, []string{"bearer_token_wo", "headers_wo"}},
		{"new version without a value, for another name", with(prom, doc{"name": "q", "bearer_token_wo_version": 2}), stored, doc{}, nil, []string{"bearer_token_wo"}},
		{"new version without a value, none stored", with(prom, doc{"bearer_token_wo_version": 2}), with(stored, none), doc{}, nil, []string{"bearer_token_wo"}},
		{"another version", with(prom, doc{"bearer_token_wo": "u", "bearer_token_wo_version": 2}), stored, both, nil, nil},
		{"empty", with(prom, with(same, doc{"bearer_token_wo": "", "headers_wo": doc{}})), stored, none,
			[]string{`The bearer token of`, `The header "A" of`, `The header "B" of`}, nil},
		{"empty, none stored", with(prom, doc{"bearer_token_wo": "", "headers_wo": doc{}}), with(stored, none), none, nil, nil},
		{"some headers", with(prom, with(same, doc{"headers_wo": doc{"A": nil, "C": "c"}})), stored, doc{"headers_stored": list{"A", "C"}}, []string{`The header "B" of`}, nil},
		{"an empty header", with(prom, with(same, doc{"headers_wo": doc{"A": "a", "B": ""}})), stored, doc{"headers_stored": list{"A"}}, []string{`The header "B" of`}, nil},
		{"a header that is not configured", with(prom, with(same, doc{"headers_wo": doc{"A": nil, "B": nil, "C": nil}})), stored, doc{}, nil, []string{`headers_wo["C"]`}},
		{"another address", with(prom, with(same, elsewhere)), stored, doc{}, []string{"", "", ""}, []string{"bearer_token_wo", `headers_wo["A"]`, `headers_wo["B"]`}},
		{"another address, and the secrets again", with(prom, with(elsewhere, doc{"bearer_token_wo": "t", "headers_wo": doc{"A": "a", "B": "b"}})), stored, both, nil, nil},
		{"certificate not verified", with(prom, with(same, doc{"insecure_skip_verify": true, "headers_wo": doc{}})), stored, doc{}, []string{"", "", ""}, []string{"bearer_token_wo"}},
		{"another name", with(prom, with(same, doc{"name": "q"})), stored, none, []string{`The bearer token of`, `The header "A" of`, `The header "B" of`}, nil},
		{"a state that does not say what is stored", prom, with(prom, settled), doc{"bearer_token_stored": nil, "headers_stored": nil}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types["scheduler_metrics_provider"]
			planned, diags := planWith(t, "scheduler_metrics_provider", terraformtest.ConfigValue(t, typ, test.config), test.state)
			var warnings, errors []string
			for _, d := range diags {
				if d.Severity == tfprotov6.DiagnosticSeverityError {
					errors = append(errors, renderPath(d.Attribute))
					continue
				}
				warnings = append(warnings, d.Summary)
			}
			if strings.Join(errors, " ") != strings.Join(test.errors, " ") {
				t.Errorf("errors are about %q, expected %q", errors, test.errors)
			}
			if len(test.errors) > 0 {
				return
			}
			if len(warnings) != len(test.warnings) {
				t.Fatalf("warnings are %q, expected %q", warnings, test.warnings)
			}
			for i, want := range test.warnings {
				if !strings.HasPrefix(warnings[i], want) {
					t.Errorf("warning %q, expected %q", warnings[i], want)
				}
			}
			plansAs(t, typ, planned, test.want)
		})
	}
}

// Removing the block that contains a secret removes the secret.
func TestPlanWithoutTheBlockOfASecret(t *testing.T) {
	typ := newValidation(t).types["scheduler_cluster"]
	state := doc{"name": "c", "paused": false, "kubernetes": doc{"kubeconfig_stored": true}}
	_, diags := planWith(t, "scheduler_cluster", terraformtest.ConfigValue(t, typ, doc{"name": "c"}), state)
	if len(diags) != 1 || diags[0].Summary != `The kubeconfig of cluster "c" will be removed` || renderPath(diags[0].Attribute) != "kubernetes" {
		t.Errorf("diagnostics are %v", diags)
	}
}
