package jwt

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// Issuer is a trusted issuer of tokens, as the configuration file has it.
type Issuer struct {
	// Name identifies the issuer in logs and errors.
	Name string `json:"name"`
	// Issuer is the exact value of the claim iss. Unless JWKSURL or PublicKeys is set, it is
	// also the base URL of the discovery document (OpenID Connect Discovery 1.0, section 4).
	Issuer string `json:"issuer"`
	// JWKSURL is the address of the key set (RFC 7517), for issuers without discovery.
	JWKSURL string `json:"jwks_url,omitempty"`
	// PublicKeys are PEM public keys or certificates, for issuers that are not reachable.
	PublicKeys []string `json:"public_keys,omitempty"`
	// CAFile contains PEM certificates that the issuer's certificate must chain to. Empty = the system's.
	CAFile string `json:"ca_file,omitempty"`
	// TokenFile contains a bearer token for the requests to the issuer, read before each request. Kubernetes needs it:
	// anonymous users may not read the keys of its service accounts.
	TokenFile string `json:"token_file,omitempty"`
	// Audiences are the accepted values of the claim aud; one is enough.
	Audiences []string `json:"audiences"`
	// Algorithms are the accepted signature algorithms. Empty = RS256 and ES256.
	Algorithms []string `json:"algorithms,omitempty"`
	// ClockSkew is how far the clock of the issuer may differ. Default 30s, at most 5m.
	ClockSkew api.Duration `json:"clock_skew,omitempty"`
	// Bindings map claims to rights. The first that matches counts, and objects of the kind role_binding count besides. A
	// token that none matches is rejected.
	Bindings []Binding `json:"bindings,omitempty"`
	// Login lets people log in with this issuer. Absent = they cannot.
	Login *Login `json:"login,omitempty"`
}

// algorithms are the possible values of Issuer.Algorithms. Symmetric ones are excluded: anyone who can verify such a
// signature can also create one.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

const (
	defaultClockSkew = 30 * time.Second
	maxClockSkew     = 5 * time.Minute
)

// clockSkew returns the configured or default clock skew.
func (i *Issuer) clockSkew() (time.Duration, error) {
	if i.ClockSkew == "" {
		return defaultClockSkew, nil
	}
	return i.ClockSkew.Parse()
}

// signatureAlgorithms returns the configured or default algorithms.
func (i *Issuer) signatureAlgorithms() []jose.SignatureAlgorithm {
	if len(i.Algorithms) == 0 {
		return []jose.SignatureAlgorithm{jose.RS256, jose.ES256}
	}
	var list []jose.SignatureAlgorithm
	for _, name := range i.Algorithms {
		list = append(list, jose.SignatureAlgorithm(name))
	}
	return list
}

// Validate returns all violations of the rules for a list of issuers. path is the field that contains the list.
func Validate(path string, issuers []Issuer) api.FieldErrors {
	var errs api.FieldErrors
	names := map[string]bool{}
	for n := range issuers {
		i, at := &issuers[n], fmt.Sprintf("%s[%d]", path, n)
		if len(validation.IsDNS1123Label(i.Name)) > 0 {
			errs.Add(at+".name", "%q must be a name of lowercase letters, digits and \"-\", at most 63 characters", i.Name)
		} else if names[i.Name] {
			errs.Add(at+".name", "%q is the name of another issuer as well", i.Name)
		}
		names[i.Name] = true
		i.validate(at, &errs)
	}
	return errs
}

func (i *Issuer) validate(at string, errs *api.FieldErrors) {
	if i.Issuer == "" {
		errs.Add(at+".issuer", "is required: the exact value of the claim iss")
	}
	switch {
	case i.JWKSURL != "" && len(i.PublicKeys) > 0:
		errs.Add(at+".jwks_url", "must not be set together with public_keys: choose one source of keys")
	case i.JWKSURL != "":
		if err := CheckURL(i.JWKSURL); err != nil {
			errs.Add(at+".jwks_url", "%v", err)
		}
	case len(i.PublicKeys) > 0:
		if _, err := parsePublicKeys(i.PublicKeys); err != nil {
			errs.Add(at+".public_keys", "%v", err)
		}
	case i.Issuer != "":
		if err := CheckURL(i.Issuer); err != nil {
			errs.Add(at+".issuer", "%v", err)
		}
	}
	if len(i.PublicKeys) > 0 && (i.CAFile != "" || i.TokenFile != "") {
		errs.Add(at+".public_keys", "are read from here, so ca_file and token_file must be absent")
	}
	// Without an audience, tokens issued for other services would be accepted.
	if len(i.Audiences) == 0 || slices.Contains(i.Audiences, "") {
		errs.Add(at+".audiences", "must name at least one audience, and none may be empty")
	}
	for n, name := range i.Algorithms {
		if !slices.Contains(algorithms, name) {
			errs.Add(fmt.Sprintf("%s.algorithms[%d]", at, n), "%q is not one of %s", name, strings.Join(algorithms, ", "))
		}
	}
	if skew, err := i.clockSkew(); err != nil {
		errs.Add(at+".clock_skew", "%v", err)
	} else if skew < 0 || skew > maxClockSkew {
		errs.Add(at+".clock_skew", "%s must be between 0s and %s", skew, maxClockSkew)
	}
	if i.Login != nil {
		i.Login.validate(at+".login", i, errs)
	}
	for n := range i.Bindings {
		i.Bindings[n].validate(fmt.Sprintf("%s.bindings[%d]", at, n), i.Issuer, errs)
	}
}

// tenantClaims lists, for issuers that sign tokens for the public, the claims that identify the owner of a token. A
// binding for one of these issuers without such a claim would accept strangers.
var tenantClaims = map[string][]string{
	"https://token.actions.githubusercontent.com": {"sub", "repository", "repository_id", "repository_owner", "repository_owner_id", "enterprise", "enterprise_id", "job_workflow_ref"},
	"https://gitlab.com":                          {"sub", "project_path", "project_id", "namespace_path", "namespace_id"},
	"https://app.terraform.io":                    {"sub", "terraform_organization_name", "terraform_organization_id", "terraform_workspace_id", "terraform_project_id"},
	"https://accounts.google.com":                 {"sub", "email", "hd"},
}

// CheckURL reports what is wrong with the URL of an issuer or its keys. It must be https, so that the keys cannot be
// replaced in transit; loopback addresses may use http.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%.200q is not a URL such as https://issuer.example.com", text)
	case u.User != nil:
		return errors.New("must not contain a user or a password: use token_file")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%.200q must begin with https://", text)
}

// A Binding gives tokens with certain claims a role.
type Binding struct {
	// Claims are auth.ClaimPatterns.
	Claims map[string]string `json:"claims"`
	// Role is what matching tokens may do.
	Role auth.Role `json:"role"`
	// Namespaces limit them. Empty = all.
	Namespaces []string `json:"namespaces,omitempty"`
}

func (b *Binding) validate(at, issuer string, errs *api.FieldErrors) {
	before := len(*errs)
	api.ValidateClaims(b.Claims, at+".claims", errs)
	if err := checkTenant(issuer, b.Claims); err != nil && len(*errs) == before {
		errs.Add(at+".claims", "%v", err)
	}
	if len(validation.IsDNS1123Label(string(b.Role))) > 0 {
		errs.Add(at+".role", "%q is not a valid name of a role: use lowercase letters, digits and \"-\", at most 63 characters", string(b.Role))
	}
	api.ValidateLimits(string(b.Role), b.Namespaces, at+".namespaces", errs)
}

// checkTenant returns what is wrong with patterns that strangers could match.
func checkTenant(issuer string, claims map[string]string) error {
	tenant := tenantClaims[issuer]
	if len(tenant) == 0 || slices.ContainsFunc(tenant, func(claim string) bool { return api.Restricts(claims[claim]) }) {
		return nil
	}
	return fmt.Errorf("must restrict one of %s: this issuer signs tokens for the public", strings.Join(tenant, ", "))
}
