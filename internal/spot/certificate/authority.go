// Package certificate manages the certificate authority of the admission webhook: it is created on
// first use, stored with its private keys encrypted, and replaced long before it expires. The
// serving certificate of the webhook is issued by every server for itself, signed by that
// authority, and kept in memory.
//
// A new authority is announced before it signs: clusters get it with the bundle a day in advance,
// and keep the old one until no certificate of it can be in use. So a cluster that fetches the
// bundle at least once a day always trusts the certificate.
//
// It is implemented here because certificate managers keep certificates in files or in a cluster,
// but the authority must be the same for all servers, which share only the store.
package certificate

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/certexpiry"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store is the part of *store.Store that an authority needs.
type Store interface {
	Read(ctx context.Context, key api.Key) (spec, status *store.Record, err error)
	Commit(ctx context.Context, writes ...store.Write) (int64, error)
}

// Sealer encrypts secrets in the store; *store.Codec implements it.
type Sealer interface {
	Seal(key api.Key, field, text string) string
	Unseal(key api.Key, field, sealed string) (string, error)
}

// Options configures an authority. Store, Sealer and Hosts are required.
type Options struct {
	Store  Store
	Sealer Sealer
	// Hosts are the addresses and names at which clusters reach the webhook.
	Hosts []string
	// Logger receives what is issued and renewed. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Authority is the certificate authority of the webhook, with the serving certificate of this
// server. It is safe for concurrent use, except Open and Run.
type Authority struct {
	options Options

	mu       sync.Mutex
	ring     keyring
	revision int64 // of the record that ring was read from
	serving  *servingCertificate
	bundle   []byte
	changed  chan struct{} // closed and replaced when the bundle changes
}

// New returns an authority, which must be opened before use.
func New(o Options) (*Authority, error) {
	if o.Store == nil || o.Sealer == nil {
		return nil, errors.New("certificate: Store and Sealer are required")
	}
	if len(o.Hosts) == 0 {
		return nil, errors.New("certificate: no address or name is given at which clusters reach the webhook")
	}
	for _, host := range o.Hosts {
		if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			return nil, fmt.Errorf("certificate: %q is neither an IP address nor a DNS name", host)
		}
	}
	o.Hosts = slices.Clone(o.Hosts)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authority{options: o, changed: make(chan struct{})}
	// Until the authority is open, secrets are random, so that nobody knows them.
	a.ring.secret = newSecret()
	return a, nil
}

// Open loads the authority from the store, or creates it. If several servers do so at once, all end
// up with the same one.
func (a *Authority) Open(ctx context.Context) error { return a.refresh(ctx) }

// Bundle returns the PEM of all authorities that clusters must currently trust, and a channel that
// is closed when that changes.
func (a *Authority) Bundle() (bundle []byte, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bundle), a.changed
}

// TLSConfig returns the server configuration: every handshake uses the current certificate.
func (a *Authority) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.serving == nil {
				return nil, errors.New("the certificate of the webhook has not been created yet")
			}
			return &a.serving.pair, nil
		},
	}
}

// renewalLate is the remaining validity below which renewal is long overdue.
const renewalLate = 20 * day

// CertificateSources returns the serving certificate of the webhook and the authorities that
// clusters trust.
func (a *Authority) CertificateSources() []certexpiry.Source {
	return []certexpiry.Source{
		{Use: "webhook", Notice: renewalLate, Read: func() ([]*x509.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.serving == nil {
				return nil, errors.New("the certificate of the webhook has not been created yet")
			}
			return []*x509.Certificate{a.serving.pair.Leaf}, nil
		}},
		{Use: "webhook_ca", Notice: renewalLate, Read: func() ([]*x509.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			var list []*x509.Certificate
			for _, authority := range a.ring.authorities {
				list = append(list, authority.certificate)
			}
			return list, nil
		}},
	}
}

// secretDigits is the length of the part of an address that only the server and one cluster know.
const secretDigits = 32

// Secret returns the part of the webhook's address that only the server and the cluster with this
// UID know: 32 hexadecimal digits, unchanged for the lifetime of the store.
func (a *Authority) Secret(clusterUID string) string {
	a.mu.Lock()
	key := a.ring.secret
	a.mu.Unlock()
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(clusterUID))
	return hex.EncodeToString(mac.Sum(nil))[:secretDigits]
}

// Collectors returns the metrics of the authority.
func (a *Authority) Collectors() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "scheduler_webhook_certificate_remaining_seconds",
		Help: "Time until the certificate of the webhook expires; 0 while there is none.",
	}, func() float64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.serving == nil {
			return 0
		}
		return a.serving.pair.Leaf.NotAfter.Sub(a.options.Now()).Seconds()
	})}
}

func newSecret() []byte {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails: crypto/rand crashes the program instead
	return secret
}
