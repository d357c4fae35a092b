package terraform

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// A rejected preview is recognized by the problem type, whatever the text.
func TestRefusedPreviewsAreRecognisedByType(t *testing.T) {
	opts := client.PutOptions{PreviewToken: "token"}
	for _, info := range api.ProblemTypes {
		want := info.Type == api.ProblemPreviewExpired || info.Type == api.ProblemPreviewMismatch || info.Type == api.ProblemFleetChanged
		for _, words := range []string{"the preview does not exist", "la décision a changé", ""} {
			err := fmt.Errorf("put: %w", &api.Problem{Type: info.Type, Status: info.Status, Title: info.Title, Detail: words})
			if got := previewRefused(err, opts); got != want {
				t.Errorf("%s, %q: previewRefused() = %t", info.Type, words, got)
			}
			if previewRefused(err, client.PutOptions{}) {
				t.Errorf("%s: previewRefused() = true without a token", info.Type)
			}
		}
	}
}

// Advice for writes that collide is given for those alone.
func TestAdviceFollowsTheType(t *testing.T) {
	for _, info := range api.ProblemTypes {
		if info.Status != 409 && info.Status != 412 {
			continue
		}
		var diags diag.Diagnostics
		diagnose(&diags, "write", tftypes.DynamicPseudoType, &api.Problem{Type: info.Type, Status: info.Status, Title: info.Title, Detail: "no"})
		want := info.Title + ": no."
		if info.Type.IsCollision() {
			want += collisionRemedy
		}
		if got := diags[0].Detail(); got != want {
			t.Errorf("%s: got %q, want %q", info.Type, got, want)
		}
	}
}
