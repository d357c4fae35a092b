package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// storeOptions returns the store's part of the configuration.
func (c *config) storeOptions(logger *slog.Logger) (store.Options, error) {
	options := store.Options{
		DataDir: c.DataDir, Cluster: c.cluster(), Endpoints: c.EtcdEndpoints, QuotaBytes: int64(c.Quota), MinFreeBytes: int64(c.MinFreeSpace),
		KeepHistory: c.KeepRevisions, LeaseTTL: c.Lease, UpgradeWindow: c.UpgradeWindow, RequestTimeout: c.StoreTimeout, Patience: c.StorePatience, Username: c.EtcdUsername, Logger: logger,
	}
	if c.EtcdPasswordFile != "" {
		password, err := os.ReadFile(c.EtcdPasswordFile)
		if err != nil {
			return options, fmt.Errorf("etcd-password-file: %w", err)
		}
		options.Password = strings.TrimRight(string(password), "\r\n")
	}
	var err error
	options.TLS, err = c.etcdTLS()
	return options, err
}

// etcdTLS returns nil if no TLS setting is given: the scheme of the endpoints then decides.
func (c *config) etcdTLS() (*tls.Config, error) {
	if c.EtcdCAFile == "" && c.EtcdCertFile == "" {
		return nil, nil
	}
	roots, err := readAuthorities("etcd-ca-file", c.EtcdCAFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if c.EtcdCertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.EtcdCertFile, c.EtcdKeyFile)
		if err != nil {
			return nil, fmt.Errorf("etcd-cert-file and etcd-key-file: %w", err)
		}
		var last atomic.Pointer[tls.Certificate]
		last.Store(&pair)
		// Every connection presents the newest certificate. If the files do not match, as in the
		// middle of a renewal, the previous one is kept.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if pair, err := tls.LoadX509KeyPair(c.EtcdCertFile, c.EtcdKeyFile); err == nil {
				last.Store(&pair)
			}
			return last.Load(), nil
		}
	}
	return config, nil
}

// readAuthorities reads the certificates of authorities from the file of a setting. Without a file
// it returns nil, meaning those of the operating system.
func readAuthorities(setting, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s contains no PEM certificate", setting, file)
	}
	return roots, nil
}

// loadCertificates returns nil for plain HTTP.
func (c *config) loadCertificates(logger *slog.Logger) (*serve.Certificates, error) {
	if !c.tls() {
		return nil, nil
	}
	return serve.LoadCertificates(serve.Files{CertFile: c.TLSCertFile, KeyFile: c.TLSKeyFile, ClientCAFile: c.ClientCAFile}, logger, time.Now)
}
