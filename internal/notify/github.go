package notify

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// gitHub starts the workflows of a repository that wait for an event of a type.
var gitHub = destination{name: "github", timeout: usualTimeout, send: sendGitHub}

// dispatch is the body of POST /repos/{owner}/{repo}/dispatches. The payload may have ten members.
type dispatch struct {
	EventType     string          `json:"event_type"`
	ClientPayload dispatchPayload `json:"client_payload"`
}

type dispatchPayload struct {
	ID           string `json:"id"`
	Notification string `json:"notification"`
	Summary      string `json:"summary"`
	Count        int    `json:"count"`
	Events       []data `json:"events"`
}

// maxPayload is less than what GitHub takes, which is 64 KiB: a larger one is refused.
const maxPayload = 60_000

// fitting returns the first events that fit into a payload.
func fitting(events []data) []data {
	size := 0
	for i := range events {
		text, err := json.Marshal(&events[i])
		if size += len(text) + 1; err != nil || size > maxPayload {
			return events[:i]
		}
	}
	return events
}

func sendGitHub(ctx context.Context, to *sender, d *delivery) error {
	spec := d.notification.Spec.GitHub
	if spec.Token.Reveal() == "" {
		return noSecretError("spec.github.token")
	}
	header := http.Header{}
	header.Set("Authorization", "Bearer "+spec.Token.Reveal())
	header.Set("Accept", "application/vnd.github+json")
	header.Set("X-Github-Api-Version", "2022-11-28")
	body := dispatch{spec.EventType, dispatchPayload{ID: d.id, Notification: d.path(), Summary: d.summary(), Count: len(d.events), Events: fitting(d.data())}}
	return to.post(ctx, strings.TrimSuffix(spec.Address, "/")+"/repos/"+spec.Repository+"/dispatches", header, body)
}
