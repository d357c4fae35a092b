// Package certificate keeps the certificate authority of the admission webhook:
// it is made on first use, kept in the store with its private keys sealed, and
// replaced long before it ends. The certificate that the webhook serves is made
// by every server for itself, signed by that authority, and stays in memory.
//
// A new authority is announced before it signs: clusters get it with the bundle
// a day ahead, and keep the old one until no certificate of it can be in use. So
// a cluster that fetches the bundle at least once a day never meets a
// certificate that it does not trust.
//
// It is our own, because certificate managers keep a certificate in files or in a cluster:
// the authority has to be the same for all servers, which share nothing but the store.
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
	"github.com/scheduler/terraform-provider-scheduler/internal/expiry"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store is what an authority needs of the store; *store.Store is one.
type Store interface {
	Read(ctx context.Context, key api.Key) (spec, status *store.Record, err error)
	Commit(ctx context.Context, writes ...store.Write) (int64, error)
}

// Sealer encrypts what must not be read in the store; *store.Codec is one.
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
	// Logger receives what is made and renewed. Nil discards it.
	Logger *slog.Logger
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Authority is the certificate authority of the webhook, and the certificate
// that this server shows to clusters. Its methods may be called from many
// goroutines, apart from Open and Run.
type Authority struct {
	options Options

	mu       sync.Mutex
	ring     keyring
	revision int64 // of the record that ring was read from
	serving  *servingCertificate
	bundle   []byte
	changed  chan struct{} // closed and replaced when bundle changes
}

// New makes an authority. It has to be opened before it is of use.
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
	// Until the authority is open, secrets are such that nobody knows them.
	a.ring.secret = newSecret()
	return a, nil
}

// Open loads the authority from the store, or makes it where there is none. Of
// servers that do so at once, all end up with the same.
func (a *Authority) Open(ctx context.Context) error { return a.refresh(ctx) }

// Bundle is the PEM of every certificate authority that clusters have to trust
// now, and a channel that is closed when that changes.
func (a *Authority) Bundle() (bundle []byte, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bundle), a.changed
}

// TLSConfig is the configuration to listen with: every handshake takes the
// certificate of that moment.
func (a *Authority) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.serving == nil {
				return nil, errors.New("the certificate of the webhook is not made yet")
			}
			return &a.serving.pair, nil
		},
	}
}

// renewalLate is the time before its end at which a certificate should have been
// replaced long since.
const renewalLate = 20 * day

// CertificateSources are the certificate that the webhook serves and the
// authorities that clusters trust.
func (a *Authority) CertificateSources() []expiry.Source {
	return []expiry.Source{
		{Use: "webhook", Notice: renewalLate, Read: func() ([]*x509.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.serving == nil {
				return nil, errors.New("the certificate of the webhook is not made yet")
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

// secretDigits is the length of the part of an address that only the server and
// one cluster know.
const secretDigits = 32

// Secret is the part of the webhook's address that only the server and the
// cluster with this uid know: 32 hexadecimal digits, the same for as long as the
// store lives.
func (a *Authority) Secret(clusterUID string) string {
	a.mu.Lock()
	key := a.ring.secret
	a.mu.Unlock()
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(clusterUID))
	return hex.EncodeToString(mac.Sum(nil))[:secretDigits]
}

// Collectors are the metrics of the authority.
func (a *Authority) Collectors() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "scheduler_webhook_certificate_remaining_seconds",
		Help: "Time until the certificate ends that the webhook serves; 0 while there is none.",
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
	_, _ = rand.Read(secret) // never fails: crypto/rand ends the process instead
	return secret
}
