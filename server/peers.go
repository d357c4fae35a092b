package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// peerTransport connects to the other servers on the store, at the addresses configured by their
// operators.
func (c *config) peerTransport() (http.RoundTripper, error) {
	roots, err := readAuthorities("peer-ca-file", c.PeerCAFile)
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ResponseHeaderTimeout: 2 * time.Minute,
	}, nil
}
