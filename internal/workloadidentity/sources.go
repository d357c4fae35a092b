package workloadidentity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// maxToken is the size limit of a token, and of the answer that holds one, in bytes.
const maxToken = 64 << 10

// file is a token in a file that is renewed by somebody else, such as a projected service
// account token of Kubernetes.
var file = source{
	name:    "file",
	present: func(o Options) bool { return o.File != "" },
	token: func(_ context.Context, o Options) (string, error) {
		f, err := os.Open(o.File)
		if err != nil {
			return "", err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxToken))
		return string(data), err
	},
}

// Variables that HCP Terraform and Terraform Enterprise set in runs of a workspace that has
// TFC_WORKLOAD_IDENTITY_AUDIENCE_SCHEDULER or TFC_WORKLOAD_IDENTITY_AUDIENCE.
const (
	hcpTaggedVariable = "TFC_WORKLOAD_IDENTITY_TOKEN_SCHEDULER"
	hcpVariable       = "TFC_WORKLOAD_IDENTITY_TOKEN"
)

// hcpTerraform is a run of HCP Terraform. The token without a tag may be for any service:
// Auto only takes it if it is for ours.
var hcpTerraform = source{
	name: "hcp_terraform",
	present: func(o Options) bool {
		if o.Getenv(hcpTaggedVariable) != "" {
			return true
		}
		text := o.Getenv(hcpVariable)
		if o.Source == Auto {
			_, err := check(text, o.Audience)
			return err == nil
		}
		return text != ""
	},
	token: func(_ context.Context, o Options) (string, error) {
		if text := o.Getenv(hcpTaggedVariable); text != "" {
			return text, nil
		}
		return o.Getenv(hcpVariable), nil
	},
}

// Variables that GitHub Actions sets in jobs with the permission "id-token: write".
const (
	githubURLVariable   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubTokenVariable = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
)

// githubActions is a job of GitHub Actions, which hands out a token for any audience.
var githubActions = source{
	name:    "github_actions",
	present: func(o Options) bool { return o.Getenv(githubURLVariable) != "" && o.Getenv(githubTokenVariable) != "" },
	token: func(ctx context.Context, o Options) (string, error) {
		address, err := url.Parse(o.Getenv(githubURLVariable))
		if err != nil {
			return "", fmt.Errorf("%s is not a URL", githubURLVariable)
		}
		query := address.Query()
		query.Set("audience", o.Audience)
		address.RawQuery = query.Encode()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
		if err != nil {
			return "", fmt.Errorf("%s is not a URL", githubURLVariable)
		}
		request.Header.Set("Authorization", "Bearer "+o.Getenv(githubTokenVariable))
		request.Header.Set("Accept", "application/json")
		answer, err := o.Client.Do(request)
		if err != nil {
			var failed *url.Error
			if errors.As(err, &failed) {
				err = failed.Err // its text repeats the address, which has a secret in it
			}
			return "", fmt.Errorf("asking %s for a token: %w", address.Host, err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s answers with status %d", address.Host, answer.StatusCode)
		}
		var body struct {
			Value string `json:"value"`
		}
		if err := json.NewDecoder(io.LimitReader(answer.Body, maxToken)).Decode(&body); err != nil {
			return "", fmt.Errorf("%s does not return a token", address.Host)
		}
		return body.Value, nil
	},
}

// idTokenVariable is the name to use for the token in id_tokens of a GitLab job.
const idTokenVariable = "SCHEDULER_ID_TOKEN"

// variable is a token in an environment variable, as in GitLab.
var variable = source{
	name:    "environment",
	present: func(o Options) bool { return o.Getenv(idTokenVariable) != "" },
	token:   func(_ context.Context, o Options) (string, error) { return o.Getenv(idTokenVariable), nil },
}
