// Package workloadidentity finds the JSON Web Token that a CI run or a pod has as its
// identity, so that nobody needs to store a token for it: in HCP Terraform, GitHub Actions,
// GitLab and Kubernetes.
package workloadidentity

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// DefaultAudience is the claim aud of tokens for the scheduling server.
const DefaultAudience = "scheduler"

// Auto selects the first source that the environment has, None no source.
const (
	Auto = "auto"
	None = "none"
)

// Options say where to look for a token.
type Options struct {
	// Source is the name of a source, Auto or None. "" = Auto.
	Source string
	// Audience is the value that the claim aud must have. "" = DefaultAudience.
	Audience string
	// File is the path of a token, for the source "file".
	File string
	// Getenv reads the environment.
	Getenv func(string) string
	// Client sends the requests of sources that ask a server. Nil = one that retries for
	// some seconds.
	Client *http.Client
	// Now is the clock.
	Now func() time.Time
}

// A source is a place where the identity of a run can be.
type source struct {
	name string
	// present reports whether the environment has it.
	present func(Options) bool
	// token reads it.
	token func(context.Context, Options) (string, error)
}

// sources are all of them, in the order in which Auto looks.
var sources = []source{file, hcpTerraform, githubActions, variable}

// Names are the possible values of Options.Source.
func Names() []string {
	names := []string{Auto, None}
	for _, s := range sources {
		names = append(names, s.name)
	}
	return names
}

// Identity supplies the token of a run. It may be used by many goroutines.
type Identity struct {
	options Options
	source  source

	mu      sync.Mutex
	text    string
	expires time.Time
}

// Find selects the source. It returns nil for None and if Auto finds none. A source that is
// asked for by name must be present.
func Find(o Options) (*Identity, error) {
	o.Audience = cmp.Or(o.Audience, DefaultAudience)
	o.Source = cmp.Or(o.Source, Auto)
	for _, s := range sources {
		switch {
		case o.Source == s.name && !s.present(o):
			return nil, fmt.Errorf("the token source %q is not available: the environment does not have what it needs", s.name)
		case o.Source == s.name, o.Source == Auto && s.present(o):
			if o.Client == nil {
				o.Client = retrying()
			}
			return &Identity{options: o, source: s}, nil
		}
	}
	if o.Source != Auto && o.Source != None {
		return nil, fmt.Errorf("%q is not one of %s", o.Source, strings.Join(Names(), ", "))
	}
	return nil, nil
}

// retrying makes a client that repeats what fails on the way or with a status of 500 or more.
func retrying() *http.Client {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryMax = 3
	c.HTTPClient.Timeout = 10 * time.Second
	return c.StandardClient()
}

// Source names where the token comes from.
func (i *Identity) Source() string { return i.source.name }

// renewBefore is how long before it expires a token is read again.
const renewBefore = time.Minute

// tokenError says that a source has no token that can be used.
type tokenError struct {
	Source string
	Err    error
}

// Error names the source and what is wrong.
func (e *tokenError) Error() string { return fmt.Sprintf("token source %q: %v", e.Source, e.Err) }

// Unwrap returns what is wrong.
func (e *tokenError) Unwrap() error { return e.Err }

// Setting returns the setting of the provider to change.
func (e *tokenError) Setting() string {
	if e.Source == file.name {
		return "token_file"
	}
	return "token_source"
}

// Token returns a token that has not expired. It is read again when it is about to.
func (i *Identity) Token(ctx context.Context) (api.Secret, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.options.Now().Add(renewBefore).Before(i.expires) {
		return api.NewSecret(i.text), nil
	}
	text, err := i.source.token(ctx, i.options)
	if err != nil {
		return api.Secret{}, &tokenError{i.source.name, err}
	}
	text = strings.TrimSpace(text)
	expires, err := check(text, i.options.Audience)
	if err != nil {
		return api.Secret{}, &tokenError{i.source.name, err}
	}
	i.text, i.expires = text, expires
	return api.NewSecret(text), nil
}

// check reads the claims that matter before a token is sent: a token for another audience
// would let whoever receives it act as this run at that other service.
func check(text, audience string) (expires time.Time, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("it has no JSON Web Token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, errors.New("it has no JSON Web Token")
	}
	var claims struct {
		Audience audiences `json:"aud"`
		Expires  float64   `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return time.Time{}, errors.New("the claims of its token are not valid")
	}
	if !slices.Contains(claims.Audience, audience) {
		return time.Time{}, fmt.Errorf("its token is for the audience %q, not %q, so it is not sent", []string(claims.Audience), audience)
	}
	return time.Unix(int64(claims.Expires), 0), nil
}

// audiences is the claim aud: one text or a list of them.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}
