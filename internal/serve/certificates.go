package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/certexpiry"
)

// Files names the files of a certificate.
type Files struct {
	// CertFile and KeyFile are PEM files. They are read again when they change.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities for client certificates. If empty, clients need none.
	ClientCAFile string
}

// Certificates keeps a TLS configuration up to date with its files.
type Certificates struct {
	files  Files
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	config   *tls.Config
	own      []*x509.Certificate // of config: the server's certificate,
	clientCA []*x509.Certificate // and the authorities for client certificates
	stamp    [3]fileStamp
	lookedAt time.Time
}

// fileStamp identifies a version of a file.
type fileStamp struct {
	modified time.Time
	size     int64
}

// certificateCheck is the interval between checks of the files.
const certificateCheck = time.Second

// LoadCertificates reads the files. now is the clock for checks.
func LoadCertificates(files Files, logger *slog.Logger, now func() time.Time) (*Certificates, error) {
	c := &Certificates{files: files, logger: logger, now: now}
	stamp, err := c.stamps()
	if err != nil {
		return nil, err
	}
	if err = c.read(); err != nil {
		return nil, err
	}
	c.stamp, c.lookedAt = stamp, now()
	return c, nil
}

// TLS returns the server configuration: every handshake uses the newest files.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current(), nil
		},
		// Required by net/http.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &c.current().Certificates[0], nil
		},
	}
}

// current reads the files again if they changed. If they do not match, as in the middle of a
// renewal, the previous ones are kept.
func (c *Certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if age := now.Sub(c.lookedAt); age >= 0 && age < certificateCheck {
		return c.config
	}
	c.lookedAt = now
	stamp, err := c.stamps()
	if err == nil && stamp == c.stamp {
		return c.config
	}
	if err == nil {
		err = c.read()
	}
	if err != nil {
		c.logger.Error("the TLS certificate was not reloaded; the previous one stays in use", "error", err)
		return c.config
	}
	c.stamp = stamp
	c.logger.Info("the TLS certificate was reloaded", "file", c.files.CertFile)
	return c.config
}

// Sources returns the certificates in use, for expiry warnings.
func (c *Certificates) Sources() []certexpiry.Source {
	inUse := func(list *[]*x509.Certificate) func() ([]*x509.Certificate, error) {
		return func() ([]*x509.Certificate, error) {
			c.current()
			c.mu.Lock()
			defer c.mu.Unlock()
			return *list, nil
		}
	}
	return []certexpiry.Source{{Use: "api", Read: inUse(&c.own)}, {Use: "client_ca", Read: inUse(&c.clientCA)}}
}

func (c *Certificates) stamps() (stamp [3]fileStamp, err error) {
	for i, file := range []string{c.files.CertFile, c.files.KeyFile, c.files.ClientCAFile} {
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return stamp, fmt.Errorf("TLS: %w", err)
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamp, nil
}

// read loads all files or none.
func (c *Certificates) read() error {
	certificate, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return fmt.Errorf("TLS certificate %s with key %s: %w", c.files.CertFile, c.files.KeyFile, err)
	}
	var own, clientCA []*x509.Certificate
	for _, der := range certificate.Certificate {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("TLS certificate %s: %w", c.files.CertFile, err)
		}
		own = append(own, parsed)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{certificate},
	}
	if c.files.ClientCAFile != "" {
		pem, err := os.ReadFile(c.files.ClientCAFile)
		if err != nil {
			return fmt.Errorf("TLS client CA: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("TLS client CA %s contains no PEM certificate", c.files.ClientCAFile)
		}
		if clientCA, err = certexpiry.Parse(pem); err != nil {
			c.logger.Warn("a certificate in the client CA file cannot be read and is ignored", "file", c.files.ClientCAFile, "error", err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.config, c.own, c.clientCA = config, own, clientCA
	return nil
}
