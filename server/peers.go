package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

// peerTransport connects to the other servers that use the same store. To those that
// require a certificate it presents the one that this server listens with; own is nil
// without TLS.
func (c *config) peerTransport(own *serve.Certificates) (http.RoundTripper, error) {
	roots, err := readAuthorities("peer-ca-file", c.PeerCAFile)
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if own != nil {
		listening := own.TLS()
		trust.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return listening.GetCertificate(nil) }
	}
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ResponseHeaderTimeout: 2 * time.Minute,
	}, nil
}
