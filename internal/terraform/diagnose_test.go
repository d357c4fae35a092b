package terraform_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func TestDiagnose(t *testing.T) {
	r := objectResources(t)[api.KindPlacement]
	typ := schemaOf(t.Context(), r).Type().TerraformType(t.Context())
	for _, test := range []struct {
		name string
		err  error
		at   []string // attributes named in the diagnostics, "" = none
		want string   // part of the first detail
	}{
		{"fields", &api.Problem{Title: "Unprocessable", Status: 422, Errors: api.FieldErrors{
			{Field: "spec.label_constraints[1]", Message: "no operator"}, {Field: `metadata.labels["a"]`, Message: "too long"},
		}}, []string{"label_constraints[1]", `labels["a"]`}, "label_constraints[1]: no operator."},
		{"field within an array", api.FieldErrors{{Field: `clusters[1].spec.number_of_clusters`, Message: "-1 must be at least 0"}},
			[]string{"clusters[1]"}, "clusters[1].spec.number_of_clusters: -1 must"},
		{"field without an attribute", api.FieldErrors{{Field: "kind", Message: "is unknown"}}, []string{""}, "kind: is unknown"},
		{"conflict", &api.Problem{Title: "Conflict", Status: 409}, []string{""}, "plan again"},
		{"precondition", &api.Problem{Title: "Precondition Failed", Status: 412}, []string{""}, "plan again"},
		{"no token", &api.Problem{Title: "Unauthorized", Status: 401}, []string{""}, "SCHEDULER_TOKEN"},
		{"forbidden", &api.Problem{Title: "Forbidden", Status: 403}, []string{""}, "does not allow"},
		{"reference forbidden", &api.Problem{Title: "Forbidden", Status: 403, Errors: api.FieldErrors{
			{Field: "spec.cluster_sets[0]", Message: `names cluster_set "x", which the token must not read`},
		}}, []string{"cluster_sets[0]"}, `cluster_sets[0]: names cluster_set "x", which the token must not read. The provider's token does not allow this`},
		{"full", &api.Problem{Title: "Insufficient Storage", Status: 507}, []string{""}, "quota"},
		{"not ready", &api.Problem{Title: "Service Unavailable", Status: 503}, []string{""}, "max_retries"},
		{"anything else", errors.New("the wire broke"), []string{""}, "The wire broke."},
	} {
		t.Run(test.name, func(t *testing.T) {
			var diags diag.Diagnostics
			terraform.Diagnose(&diags, `update placement "shop/web"`, typ, test.err)
			if len(diags) != len(test.at) {
				t.Fatalf("unexpected diagnostics %v", diags)
			}
			for i, want := range test.at {
				at := ""
				if d, ok := diags[i].(diag.DiagnosticWithPath); ok {
					at = d.Path().String()
				}
				if at != want {
					t.Errorf("diagnostic %d is about %q, want %q", i, at, want)
				}
			}
			if !strings.Contains(diags[0].Detail(), test.want) {
				t.Errorf("detail %q, want %q", diags[0].Detail(), test.want)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"no answer":            "No answer.",
		"":                     "",
		"labels[0]: is bad":    "labels[0]: is bad.",
		"request_timeout is 0": "request_timeout is 0.",
		"Why?":                 "Why?",
		"ärger":                "Ärger.",
		"end.":                 "end.",
		"no \x1b[2J\u202eb\nc": "No \\x1b[2J\\u202eb\nc.",

		"east chosen, 2 wanted; 1 of 1 cluster fits": "east chosen, 2 wanted; 1 of 1 cluster fits.",
		"b, c, d, 7 more chosen; 10 of 12 fit":       "b, c, d, 7 more chosen; 10 of 12 fit.",
		"berlin was chosen before and stays":         "berlin was chosen before and stays.",
		"no clusters wanted":                         "No clusters wanted.",
		"spec.kafka is required":                     "kafka is required.",
		"the cluster is not watched: set spec.spot.enabled, or (spec.kubernetes) nothing": "The cluster is not watched: set spot.enabled, or (kubernetes) nothing.",
		`it says "spec.x" and managedCluster.spec.taints`:                                 `It says "spec.x" and managedCluster.spec.taints.`,
	} {
		if got := terraform.Sentence(text); got != want {
			t.Errorf("Sentence(%q) = %q, want %q", text, got, want)
		}
	}
}

// The error of a rejected read does not mention changes since the plan.
func TestRefusedRead(t *testing.T) {
	refused := &api.Problem{Status: http.StatusConflict, Title: "Conflict", Detail: "spot is not enabled for cluster \"west\": set spec.spot.enabled"}
	for what, want := range map[string]bool{"read the split of west": false, `update cluster "west"`: true} {
		var diags diag.Diagnostics
		terraform.Diagnose(&diags, what, tftypes.DynamicPseudoType, refused)
		detail := diags[0].Detail()
		if got := strings.Contains(detail, "plan again"); got != want || strings.Contains(detail, "spec.") {
			t.Errorf("%s: got %q", what, detail)
		}
	}
}
