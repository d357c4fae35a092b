package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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

// FileError says what is wrong with a certificate file.
type FileError struct {
	Setting string // that names the file, such as "ca_cert_file"
	Err     error
}

// Error describes the mistake.
func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *FileError) Unwrap() error { return e.Err }

func newTransport(opts Options) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if opts.CACertFile != "" {
		authorities, err := os.ReadFile(opts.CACertFile)
		if err != nil {
			return nil, &FileError{"ca_cert_file", fmt.Errorf("CA certificate file: %w", err)}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, &FileError{"ca_cert_file", fmt.Errorf("CA certificate file %s contains no PEM certificate", opts.CACertFile)}
		}
	}
	switch {
	case (opts.ClientCertFile == "") != (opts.ClientKeyFile == ""):
		missing := "client_cert_file"
		if opts.ClientKeyFile == "" {
			missing = "client_key_file"
		}
		return nil, &FileError{missing, fmt.Errorf("a client certificate needs both files: certificate %q, key %q", opts.ClientCertFile, opts.ClientKeyFile)}
	case opts.ClientCertFile != "":
		certificate, err := os.ReadFile(opts.ClientCertFile)
		if err != nil {
			return nil, &FileError{"client_cert_file", fmt.Errorf("client certificate: %w", err)}
		}
		if block, _ := pem.Decode(certificate); block == nil {
			return nil, &FileError{"client_cert_file", fmt.Errorf("client certificate: %s contains no PEM certificate", opts.ClientCertFile)}
		}
		key, err := os.ReadFile(opts.ClientKeyFile)
		if err != nil {
			return nil, &FileError{"client_key_file", fmt.Errorf("key of the client certificate: %w", err)}
		}
		if block, _ := pem.Decode(key); block == nil {
			return nil, &FileError{"client_key_file", fmt.Errorf("key of the client certificate: %s contains no PEM key", opts.ClientKeyFile)}
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, &FileError{"client_cert_file", fmt.Errorf("client certificate %s with key %s: %w", opts.ClientCertFile, opts.ClientKeyFile, err)}
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
