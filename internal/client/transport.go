package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// connectionsPerHost is the number of idle connections to keep. Go's default is two, but Terraform
// runs ten operations at a time, so most reads would open new connections.
const connectionsPerHost = 100

// idleTimeout is how long an idle connection is kept: long enough for the next operation of an
// apply, but not much longer, because servers limit the number of connections.
const idleTimeout = 15 * time.Second

func newTransport(opts Options) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if opts.CACertFile != "" {
		pem, err := os.ReadFile(opts.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("CA certificate file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA certificate file %s contains no PEM certificate", opts.CACertFile)
		}
	}
	switch {
	case (opts.ClientCertFile == "") != (opts.ClientKeyFile == ""):
		return nil, fmt.Errorf("a client certificate needs both files: certificate %q, key %q", opts.ClientCertFile, opts.ClientKeyFile)
	case opts.ClientCertFile != "":
		pair, err := tls.LoadX509KeyPair(opts.ClientCertFile, opts.ClientKeyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          connectionsPerHost,
		MaxIdleConnsPerHost:   connectionsPerHost,
		IdleConnTimeout:       idleTimeout,
		ExpectContinueTimeout: time.Second,
	}, nil
}
