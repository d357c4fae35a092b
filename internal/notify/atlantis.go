package notify

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// atlantis plans. The server answers when it has planned.
var atlantis = destination{name: "atlantis", timeout: 10 * time.Minute, send: sendAtlantis}

// planRequest is the body of POST /api/plan.
type planRequest struct {
	Repository string
	Ref        string
	Type       string
	Projects   []string   `json:",omitempty"`
	Paths      []planPath `json:",omitempty"`
}

// planPath is a directory to plan.
type planPath struct{ Directory, Workspace string }

func sendAtlantis(ctx context.Context, to *sender, d *delivery) error {
	spec := d.notification.Spec.Atlantis
	if spec.Token.Reveal() == "" {
		return noSecretError("spec.atlantis.token")
	}
	body := planRequest{Repository: spec.Repository, Ref: spec.Ref, Type: spec.Type, Projects: spec.Projects}
	for _, directory := range spec.Directories {
		body.Paths = append(body.Paths, planPath{directory, "default"})
	}
	header := http.Header{}
	header.Set("X-Atlantis-Token", spec.Token.Reveal())
	return to.post(ctx, strings.TrimSuffix(spec.URL, "/")+"/api/plan", header, body)
}
