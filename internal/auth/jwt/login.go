package jwt

import (
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Login lets people log in with an issuer (OpenID Connect Core 1.0, section 3.1: authorization code, with PKCE, RFC 7636).
// Their client, such as a page in a browser, gets the ID token from the issuer itself and sends it as its bearer token;
// the server takes no part in that and holds no secret.
type Login struct {
	// ClientID is that of a public client at the issuer, which may redirect to the address of the client. It must be
	// one of the audiences: it is the audience of ID tokens.
	ClientID string `json:"client_id"`
	// Scopes are requested besides openid, such as groups, if a binding reads their claims.
	Scopes []string `json:"scopes,omitempty"`
}

func (l *Login) validate(at string, issuer *Issuer, errs *api.FieldErrors) {
	if !slices.Contains(issuer.Audiences, l.ClientID) {
		errs.Add(at+".client_id", "%q must be one of audiences: it is the audience (aud) of the tokens that people get", l.ClientID)
	}
	for i, scope := range l.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			errs.Add(at+".scopes", "number %d: %q is not a scope: it must consist of visible ASCII characters", i+1, scope)
		}
	}
	// Clients find the endpoints by the discovery document, whatever the server reads the keys from.
	if issuer.JWKSURL == "" && len(issuer.PublicKeys) == 0 {
		return // checked already
	}
	if err := CheckURL(issuer.Issuer); err != nil {
		errs.Add(at, "needs the discovery document of the issuer: issuer %v", err)
	}
}

// Logins returns the issuers with which people can log in.
func Logins(issuers []Issuer) []api.LoginOption {
	var options []api.LoginOption
	for _, i := range issuers {
		if i.Login == nil {
			continue
		}
		scopes := append([]string{"openid"}, slices.DeleteFunc(slices.Clone(i.Login.Scopes), func(s string) bool { return s == "openid" })...)
		options = append(options, api.LoginOption{Name: i.Name, Issuer: i.Issuer, ClientID: i.Login.ClientID, Scopes: scopes})
	}
	return options
}
