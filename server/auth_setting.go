package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/jwks"
)

// authSetting is the setting auth: an object in the configuration file, JSON or YAML in a
// flag or variable.
type authSetting struct {
	// JWT are the trusted issuers of JSON Web Tokens.
	JWT []jwt.Issuer `json:"jwt,omitempty"`
}

// Set implements pflag.Value.
func (a *authSetting) Set(text string) error {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return fmt.Errorf("is neither JSON nor YAML: %w", err)
	}
	*a = authSetting{}
	return api.DecodeInto(data, a)
}

// String implements pflag.Value.
func (a *authSetting) String() string {
	if a == nil || len(a.JWT) == 0 {
		return ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		return ""
	}
	return string(text)
}

// Type implements pflag.Value.
func (a *authSetting) Type() string { return objectType }

// check returns every rule that the setting breaks.
func (a *authSetting) check() api.FieldErrors {
	errs := jwt.Validate("auth.jwt", a.JWT)
	for n, issuer := range a.JWT {
		for _, file := range []struct{ key, path string }{{"ca_file", issuer.CAFile}, {"token_file", issuer.TokenFile}} {
			if file.path == "" {
				continue
			}
			if _, err := os.ReadFile(file.path); err != nil {
				errs.Add(fmt.Sprintf("auth.jwt[%d].%s", n, file.key), "%v", err)
			}
		}
	}
	return errs
}

// verifier makes what checks tokens of the issuers, nil if there are none.
func (a *authSetting) verifier(network *addresspolicy.Policy, logger *slog.Logger, faults *recovery.Component) (*jwt.Verifier, error) {
	if len(a.JWT) == 0 {
		return nil, nil
	}
	return jwt.New(a.JWT, func(issuer jwt.Issuer) jwt.Keys {
		return jwks.New(jwks.Options{Issuer: issuer, Network: network, Logger: logger, Faults: faults, Now: time.Now})
	}, time.Now)
}
