package openstack

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	client "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// maxAnswer is the maximum size of a response: a page of a thousand hypervisors is about two
// megabytes.
const maxAnswer = 16 << 20

// session is a login to OpenStack. An expired token is renewed automatically.
type session struct {
	spec     *api.OpenStackSpec
	provider *gophercloud.ProviderClient
	hosts    *tokenHosts
}

// login requests a token from the identity service.
func login(ctx context.Context, spec *api.OpenStackSpec, network *addresspolicy.Policy, roundTripper http.RoundTripper) (*session, error) {
	var roots *x509.CertPool
	if spec.CACert != "" {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(spec.CACert))
	}
	provider, err := client.NewClient(spec.AuthURL)
	if err != nil {
		return nil, failed("auth_url %q is not an address", spec.AuthURL)
	}
	provider.UserAgent.Prepend("scheduler-server")
	httpClient := outbound.New(network, outbound.Options{
		MaxBody: maxAnswer, RootCAs: roots, InsecureSkipVerify: spec.InsecureSkipVerify, MaxConnsPerHost: 16, RoundTripper: roundTripper,
	})
	s := &session{spec: spec, provider: provider, hosts: &tokenHosts{base: httpClient.Transport, known: map[string]bool{}}}
	s.hosts.add(provider.IdentityBase)
	httpClient.Transport = s.hosts
	provider.HTTPClient = *httpClient
	options := &tokens.AuthOptions{
		Username: spec.Username, UserID: spec.UserID, DomainName: spec.UserDomainName, Password: spec.Password.Reveal(),
		ApplicationCredentialID: spec.ApplicationCredentialID, ApplicationCredentialSecret: spec.ApplicationCredentialSecret.Reveal(),
		AllowReauth: true,
	}
	if spec.UserID != "" || spec.ApplicationCredentialID != "" {
		options.DomainName = ""
	}
	if spec.ApplicationCredentialID == "" {
		options.Scope = tokens.Scope{ProjectID: spec.ProjectID, ProjectName: spec.ProjectName}
		if spec.ProjectName != "" {
			options.Scope.DomainName = spec.ProjectDomainName
		}
	}
	if err := client.AuthenticateV3(ctx, provider, options, gophercloud.EndpointOpts{}); err != nil {
		s.close()
		return nil, s.refused("logging in at "+spec.AuthURL, err)
	}
	for _, entry := range s.catalog() {
		for _, endpoint := range entry.Endpoints {
			s.hosts.add(endpoint.URL)
		}
	}
	return s, nil
}

// close closes idle connections.
func (s *session) close() { s.provider.HTTPClient.CloseIdleConnections() }

// refused describes an error. If OpenStack rejects the credentials or forbids an operation, it
// names the relevant field.
func (s *session) refused(doing string, err error) error {
	code := statusOf(err)
	if _, renewed := errors.AsType[*gophercloud.ErrErrorAfterReauthentication](err); renewed && code == http.StatusUnauthorized {
		return failed("%s: the token is rejected although the identity service has just issued it", doing)
	}
	unauthorized := func(format string, args ...any) error {
		return &Failure{Reason: api.ReasonUnauthorized, Message: doing + ": " + fmt.Sprintf(format, args...), status: code}
	}
	switch code {
	case http.StatusUnauthorized:
		if s.spec.ApplicationCredentialID != "" {
			return unauthorized("the application credential %q is rejected: correct openstack.application_credential_id or application_credential_secret", s.spec.ApplicationCredentialID)
		}
		return unauthorized("%s is rejected: correct openstack.password, or the names of the user and of the project", s.user())
	case http.StatusForbidden:
		return unauthorized("%s is not allowed to do that: give the user the role admin in the project, or use another user in openstack", s.user())
	}
	return failureOf(doing, err)
}

func (s *session) user() string {
	switch {
	case s.spec.ApplicationCredentialID != "":
		return fmt.Sprintf("the application credential %q", s.spec.ApplicationCredentialID)
	case s.spec.UserID != "":
		return fmt.Sprintf("the user with the id %q", s.spec.UserID)
	}
	return fmt.Sprintf("the user %q of the domain %q", s.spec.Username, s.spec.UserDomainName)
}

// catalog returns the service catalog of the last token.
func (s *session) catalog() []tokens.CatalogEntry {
	result, ok := s.provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return nil
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil // no services, which is reported for each one needed
	}
	return catalog.Entries
}

// Catalog types of each service, older ones last.
var (
	computeTypes   = []string{"compute"}
	placementTypes = []string{"placement"}
	volumeTypes    = []string{"block-storage", "volumev3"}
	networkTypes   = []string{"network"}
	magnumTypes    = []string{"container-infrastructure-management", "container-infra"}
)

// regions returns the sorted names of the regions with a compute service.
func (s *session) regions() []string {
	names := map[string]bool{}
	for _, entry := range s.catalog() {
		if slices.Contains(computeTypes, entry.Type) {
			for _, endpoint := range entry.Endpoints {
				names[regionOf(endpoint)] = true
			}
		}
	}
	return sortedKeys(names)
}

func regionOf(endpoint tokens.Endpoint) string {
	if endpoint.RegionID != "" {
		return endpoint.RegionID
	}
	return endpoint.Region
}

// service returns the client of a service in a region, or nil if the catalog has none.
func (s *session) service(region string, types []string) *gophercloud.ServiceClient {
	entries := s.catalog()
	for _, kind := range types {
		for _, entry := range entries {
			for _, endpoint := range entry.Endpoints {
				if entry.Type == kind && endpoint.Interface == "public" && regionOf(endpoint) == region {
					return &gophercloud.ServiceClient{ProviderClient: s.provider, Endpoint: gophercloud.NormalizeURL(endpoint.URL), Type: kind}
				}
			}
		}
	}
	return nil
}

// errElsewhere says that a response refers to a host that is not in the catalog.
const errElsewhere = outbound.Error("the response refers to a host that is not in the catalog")

// tokenHosts sends requests, which contain the token or password, only to the hosts in the catalog:
// neither a redirect nor the address of a next page may send them elsewhere.
type tokenHosts struct {
	base  http.RoundTripper
	mu    sync.Mutex
	known map[string]bool
}

func (h *tokenHosts) add(address string) {
	if u, err := url.Parse(address); err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.known[strings.ToLower(u.Host)] = true
	}
}

// RoundTrip implements http.RoundTripper.
func (h *tokenHosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	known := h.known[strings.ToLower(r.URL.Host)]
	h.mu.Unlock()
	if !known {
		return nil, errElsewhere
	}
	return h.base.RoundTrip(r)
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (h *tokenHosts) CloseIdleConnections() {
	if c, ok := h.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
