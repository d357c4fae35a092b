package terraform

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Only a rejected preview is reported as one: 412 is also the response if someone else has changed the object.
func TestPreviewRefused(t *testing.T) {
	key := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "preview"}
	for _, test := range []struct {
		name, token, detail string
		problem             api.ProblemType
		status              int
		refused             bool
		summary, text       string
	}{
		{name: "fleet changed", token: "x", problem: api.ProblemFleetChanged, status: 412, refused: true,
			detail:  "the fleet changed since the preview: plan again: it showed [a], and the decision would now be [b]",
			summary: "The fleet changed since the preview: plan again",
			text:    `It showed [a], and the decision would now be [b]. Nothing was changed for placement "shop/preview"; a new plan`},
		{name: "fleet changed, without a reason", token: "x", problem: api.ProblemFleetChanged, status: 412, refused: true,
			detail: "the fleet changed since the preview: plan again", summary: "The fleet changed since the preview: plan again", text: `Nothing was changed`},
		{name: "other spec", token: "x", problem: api.ProblemPreviewMismatch, status: 412, refused: true,
			detail:  `the preview was made for another spec of placement "shop/preview": plan again`,
			summary: `The preview does not hold for placement "shop/preview"`, text: "The preview was made for another spec"},
		{name: "object changed by another client", token: "x", problem: api.ProblemObjectChanged, status: 412, detail: `placement "shop/preview" has changed`},
		{name: "no token", problem: api.ProblemFleetChanged, status: 412, detail: "the fleet changed since the preview"},
		{name: "other problem", token: "x", problem: api.ProblemInvalid, status: 422, detail: "the preview"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := error(&api.Problem{Type: test.problem, Title: "Precondition Failed", Status: test.status, Detail: test.detail})
			if got := previewRefused(err, client.PutOptions{PreviewToken: test.token}); got != test.refused {
				t.Fatalf("previewRefused() = %v", got)
			}
			if !test.refused {
				return
			}
			var diags diag.Diagnostics
			reportRefusedPreview(&diags, key, err)
			if len(diags) != 1 || diags[0].Summary() != test.summary || !strings.Contains(diags[0].Detail(), test.text) {
				t.Errorf("unexpected diagnostics %v", diags)
			}
		})
	}
}
