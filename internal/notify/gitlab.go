package notify

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// gitLab starts a pipeline with a trigger token.
var gitLab = destination{name: "gitlab", timeout: usualTimeout, send: sendGitLab}

func sendGitLab(ctx context.Context, to *sender, d *delivery) error {
	spec := d.notification.Spec.GitLab
	if spec.Token.Reveal() == "" {
		return noSecretError("spec.gitlab.token")
	}
	form := url.Values{"token": {spec.Token.Reveal()}, "ref": {spec.Ref}}
	for name, value := range spec.Variables {
		form.Set("variables["+name+"]", value)
	}
	form.Set("variables[SCHEDULER_NOTIFICATION]", d.path())
	form.Set("variables[SCHEDULER_EVENTS]", d.kinds())
	form.Set("variables[SCHEDULER_MESSAGE]", strings.Join(d.lines(), "\n"))
	header := http.Header{}
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	address := strings.TrimSuffix(spec.Address, "/") + "/api/v4/projects/" + url.PathEscape(spec.Project) + "/trigger/pipeline"
	_, err := to.request(ctx, http.MethodPost, address, header, []byte(form.Encode()))
	return err
}
