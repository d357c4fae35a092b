package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// peerTransport connects to the other servers on the store, at the addresses that
// their operators have given them.
func (c *config) peerTransport() (http.RoundTripper, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.PeerCAFile != "" {
		pem, err := os.ReadFile(c.PeerCAFile)
		if err != nil {
			return nil, fmt.Errorf("peer-ca-file: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("peer-ca-file: %s contains no PEM certificate", c.PeerCAFile)
		}
	}
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ResponseHeaderTimeout: 2 * time.Minute,
	}, nil
}
