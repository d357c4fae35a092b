package notify

import (
	"context"
	"net/http"
	"strings"
)

// slack writes a message about all events into a channel.
var slack = destination{name: "slack", divisible: true, timeout: usualTimeout, send: sendSlack}

// slackEscapes are the characters that have a meaning in messages.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func sendSlack(ctx context.Context, to *sender, d *delivery) error {
	spec := d.notification.Spec.Slack
	if spec.URL.Reveal() == "" {
		return noSecretError("spec.slack.url")
	}
	return to.post(ctx, spec.URL.Reveal(), http.Header{}, map[string]string{"text": slackEscapes.Replace(strings.Join(d.lines(), "\n"))})
}
