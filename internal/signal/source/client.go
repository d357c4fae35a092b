package source

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// MaxBody is the maximum size of a response in bytes.
const MaxBody = 16 << 20

// ClientOptions are the options of a provider type, in addition to the connection settings in the
// spec.
type ClientOptions struct {
	// Address is the provider's base address; headers are sent only to its host.
	Address string
	// Headers are defaults that the spec's headers override.
	Headers map[string]string
	// MaxConnsPerHost limits the number of connections. Default: no limit.
	MaxConnsPerHost int
	// RoundTripper replaces the network in tests.
	RoundTripper http.RoundTripper
}

// NewClient returns the HTTP client of a provider: with its headers, token and certificates, and
// with limits on where it connects and on response sizes.
func NewClient(spec *api.MetricsProviderSpec, network *addresspolicy.Policy, options ClientOptions) (*http.Client, error) {
	origin, err := url.Parse(options.Address)
	if err != nil {
		return nil, fmt.Errorf("spec.%s.url %q is not an address", spec.Type, options.Address)
	}
	headers := make(map[string]string, len(options.Headers)+len(spec.Headers)+1)
	maps.Copy(headers, options.Headers)
	for name, value := range spec.Headers {
		headers[http.CanonicalHeaderKey(name)] = value.Reveal()
	}
	if !spec.BearerToken.IsZero() {
		headers["Authorization"] = "Bearer " + spec.BearerToken.Reveal()
	}
	var roots *x509.CertPool
	if spec.CACert != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(spec.CACert)) {
			return nil, errors.New("ca_cert contains no PEM certificate")
		}
	}
	return outbound.New(network, outbound.Options{
		Origin:             origin,
		Headers:            headers,
		MaxBody:            MaxBody,
		RootCAs:            roots,
		InsecureSkipVerify: spec.InsecureSkipVerify,
		MaxConnsPerHost:    options.MaxConnsPerHost,
		RoundTripper:       options.RoundTripper,
	}), nil
}
