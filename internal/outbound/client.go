// Package outbound connects to addresses that users supply. It limits everything that
// the other side controls, because it may be slow, broken or hostile.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// maxRedirects is the maximum number of redirects.
const maxRedirects = 3

// Error is an error with a text of this server.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

const (
	// ErrTooLarge says that the body of a response exceeds its limit.
	ErrTooLarge = Error("the response is too large")
	// ErrRedirects says that there were too many redirects.
	ErrRedirects = Error("redirected more than 3 times")
	// ErrRedirectedAway says that a response redirects to another host, port or scheme.
	ErrRedirectedAway = Error("redirected to another host, port or scheme, which is not followed: use the final address")
)

// Options of a client.
type Options struct {
	// Origin is the address to whose host headers are sent. If nil, no headers are sent.
	Origin *url.URL
	// Headers are sent with every request to the origin.
	Headers map[string]string
	// MaxBody is the maximum size of a response body in bytes, after decompression. Default: 1 MiB.
	MaxBody int64
	// RootCAs are trusted instead of the system's certificates, unless nil.
	RootCAs *x509.CertPool
	// InsecureSkipVerify trusts any certificate.
	InsecureSkipVerify bool
	// MaxConnsPerHost limits the connections to one host. Default: no limit.
	MaxConnsPerHost int
	// DisableKeepAlives closes every connection after its response, for callers with very many
	// hosts that are each contacted rarely.
	DisableKeepAlives bool
	// RoundTripper replaces the network in tests.
	RoundTripper http.RoundTripper
}

// New returns a client that connects to what the policy allows. Requests are limited by their
// context only; the client has no timeout.
func New(p *addresspolicy.Policy, o Options) *http.Client {
	base := o.RoundTripper
	if base == nil {
		t := &http.Transport{
			Proxy:                  Proxied(p, http.ProxyFromEnvironment),
			DialContext:            Dialer(p),
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxIdleConnsPerHost:    4,
			MaxConnsPerHost:        o.MaxConnsPerHost,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      o.DisableKeepAlives,
			TLSClientConfig: &tls.Config{
				MinVersion:         tls.VersionTLS12,
				RootCAs:            o.RootCAs,
				InsecureSkipVerify: o.InsecureSkipVerify, //nolint:gosec // explicitly requested by the user
			},
		}
		base = t
	}
	limited := &limits{base: tracing.Client(base, nil), origin: o.Origin, headers: o.Headers, maxBody: o.MaxBody}
	if limited.maxBody <= 0 {
		limited.maxBody = 1 << 20
	}
	return &http.Client{
		Transport:     limited,
		CheckRedirect: checkRedirect,
	}
}

// checkRedirect follows a limited number of redirects, and none to another host, port or scheme:
// that server was not configured, must not get the user's secrets, and might be reachable only from
// this server.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch from := via[0].URL; {
	case !sameOrigin(from, r.URL):
		return ErrRedirectedAway
	case len(via) > maxRedirects:
		return ErrRedirects
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// limits is a RoundTripper that adds headers and limits the body.
type limits struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	maxBody int64
}

// RoundTrip implements http.RoundTripper.
func (l *limits) RoundTrip(req *http.Request) (*http.Response, error) {
	// Requests to another host must not contain the user's secrets.
	if l.origin != nil && sameOrigin(l.origin, req.URL) {
		req = req.Clone(req.Context())
		for name, value := range l.headers {
			if textproto.CanonicalMIMEHeaderKey(name) == "Host" {
				req.Host = value
			}
			req.Header.Set(name, value)
		}
	}
	resp, err := l.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = Bounded(resp.Body, l.maxBody)
	return resp, nil
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (l *limits) CloseIdleConnections() {
	if c, ok := l.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Bounded returns a body whose reads fail with ErrTooLarge beyond a limit in bytes.
func Bounded(body io.ReadCloser, limit int64) io.ReadCloser {
	return &boundedBody{ReadCloser: body, left: limit}
}

// boundedBody fails when the limit is exceeded instead of truncating the body: a partial response
// must not be taken for a complete one.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}
