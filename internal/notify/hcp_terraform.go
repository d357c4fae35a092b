package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
)

// hcpTerraform starts a run of a workspace, unless one waits for its turn.
var hcpTerraform = destination{name: "hcp_terraform", timeout: usualTimeout, send: sendHCPTerraform}

// jsonAPI is the media type of the API.
const jsonAPI = "application/vnd.api+json"

// waitingRuns are the states of runs that have not begun: they will see what has changed. At most
// one such run is made.
const waitingRuns = "pending,plan_queued"

// newRun is the body of POST /api/v2/runs.
type newRun struct {
	Data struct {
		Type       string `json:"type"`
		Attributes struct {
			Message   string `json:"message"`
			AutoApply *bool  `json:"auto-apply,omitempty"`
		} `json:"attributes"`
		Relationships struct {
			Workspace struct {
				Data struct {
					Type string `json:"type"`
					ID   string `json:"id"`
				} `json:"data"`
			} `json:"workspace"`
		} `json:"relationships"`
	} `json:"data"`
}

func sendHCPTerraform(ctx context.Context, to *sender, d *delivery) error {
	spec := d.notification.Spec.HCPTerraform
	if spec.Token.Reveal() == "" {
		return noSecretError("spec.hcp_terraform.token")
	}
	waits, err := runWaits(ctx, to, spec)
	if waits || err != nil {
		return err
	}
	run := newRun{}
	run.Data.Type = "runs"
	run.Data.Attributes.Message, run.Data.Attributes.AutoApply = runMessage(d), spec.AutoApply
	run.Data.Relationships.Workspace.Data.Type, run.Data.Relationships.Workspace.Data.ID = "workspaces", spec.WorkspaceID
	return to.post(ctx, strings.TrimSuffix(spec.Address, "/")+"/api/v2/runs", runHeader(spec), run)
}

func runHeader(spec *api.HCPTerraformDestination) http.Header {
	header := http.Header{}
	header.Set("Authorization", "Bearer "+spec.Token.Reveal())
	header.Set("Content-Type", jsonAPI)
	return header
}

// runWaits reports whether the workspace has a run that has not begun.
func runWaits(ctx context.Context, to *sender, spec *api.HCPTerraformDestination) (bool, error) {
	query := url.Values{"filter[status]": {waitingRuns}, "page[size]": {"1"}}
	address := fmt.Sprintf("%s/api/v2/workspaces/%s/runs?%s", strings.TrimSuffix(spec.Address, "/"), spec.WorkspaceID, query.Encode())
	answer, err := to.request(ctx, http.MethodGet, address, runHeader(spec), nil)
	if err != nil {
		return false, err
	}
	var runs struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &runs); err != nil {
		return false, outbound.Error("the answer is not a list of runs: the address is that of something else than HCP Terraform")
	}
	return len(runs.Data) > 0, nil
}

// maxRunMessage is how long a message is at most.
const maxRunMessage = 1000

// runMessage says why the run was started.
func runMessage(d *delivery) string {
	text := []rune("scheduler: " + strings.Join(d.lines(), "; "))
	if len(text) > maxRunMessage {
		text = append(text[:maxRunMessage-1], '…')
	}
	return string(text)
}
