package jwks

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

const (
	// refreshAfter is the age at which keys are fetched again. A withdrawn key is accepted at most that long, while the
	// issuer can be reached.
	refreshAfter = 10 * time.Minute
	// retryAfter is the delay between two attempts to fetch the keys, however many tokens name unknown keys.
	retryAfter = 10 * time.Second
	// usableFor is how long keys are used after they were last fetched.
	usableFor = 24 * time.Hour
	// defaultTimeout is the time limit for fetching the discovery document and the keys.
	defaultTimeout = 5 * time.Second
	// maxDocument is the size limit of each of them, in bytes.
	maxDocument = 1 << 20
)

// Options are the options of Keys.
type Options struct {
	Issuer  jwt.Issuer
	Network *addresspolicy.Policy
	Logger  *slog.Logger
	// Faults records panics. Nil = not recorded.
	Faults *recovery.Component
	Now    func() time.Time
	// Timeout is the time limit for fetching the discovery document and the keys. Zero = 5 seconds.
	Timeout time.Duration
}

// Keys are the keys of one issuer, fetched when first needed. It implements jwt.Keys.
type Keys struct {
	options Options
	flight  singleflight.Group

	mu    sync.Mutex
	set   jose.JSONWebKeySet
	read  time.Time // when set was fetched; zero = never
	tried time.Time // when the last attempt started
	err   error     // error of the last attempt

	skipped int // keys that were of no use the last time; only one attempt runs at a time
}

// New makes the keys of an issuer.
func New(o Options) *Keys { return &Keys{options: o} }

// Keys implements jwt.Keys. It waits for the issuer only if none of the known keys will do.
func (k *Keys) Keys(ctx context.Context, wanted func(jose.JSONWebKeySet) bool) (jose.JSONWebKeySet, error) {
	now := k.options.Now()
	k.mu.Lock()
	usable := !k.read.IsZero() && now.Sub(k.read) < usableFor
	missing := !usable || !wanted(k.set)
	due := missing || now.Sub(k.read) >= refreshAfter
	due = due && (k.tried.IsZero() || now.Sub(k.tried) >= retryAfter)
	k.mu.Unlock()
	// Join an attempt that is already running.
	if due || missing {
		done := k.flight.DoChan("", func() (any, error) { k.refresh(context.WithoutCancel(ctx)); return nil, nil })
		if missing {
			select {
			case <-done:
			case <-ctx.Done():
				return jose.JSONWebKeySet{}, ctx.Err()
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read.IsZero() || k.options.Now().Sub(k.read) >= usableFor {
		return jose.JSONWebKeySet{}, k.err
	}
	return k.set, nil
}

// refresh fetches the keys, unless the last attempt was a moment ago.
func (k *Keys) refresh(ctx context.Context) {
	now := k.options.Now()
	k.mu.Lock()
	if !k.tried.IsZero() && now.Sub(k.tried) < retryAfter {
		k.mu.Unlock()
		return
	}
	k.tried = now
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(k.options.Timeout, defaultTimeout))
	defer cancel()
	var set jose.JSONWebKeySet
	err := k.options.Faults.Do("", func() (err error) {
		set, err = k.fetch(ctx)
		return err
	})
	if err != nil {
		k.options.Logger.Warn("the keys of a trusted issuer cannot be read", "issuer", k.options.Issuer.Name, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err = err; err == nil {
		k.set, k.read = set, now
	}
}

// fetch fetches the discovery document, if there is one, and the key set.
func (k *Keys) fetch(ctx context.Context) (jose.JSONWebKeySet, error) {
	issuer := k.options.Issuer
	address := issuer.JWKSURL
	origin := address
	if address == "" {
		origin = issuer.Issuer
	}
	client, err := k.client(origin)
	if err != nil {
		return jose.JSONWebKeySet{}, err
	}
	defer client.CloseIdleConnections()
	if address == "" {
		var found struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		at := strings.TrimSuffix(issuer.Issuer, "/") + "/.well-known/openid-configuration"
		document, err := get(ctx, client, at)
		if err != nil {
			return jose.JSONWebKeySet{}, err
		}
		if err := json.Unmarshal(document, &found); err != nil {
			return jose.JSONWebKeySet{}, fmt.Errorf("%s does not return a discovery document", at)
		}
		if found.Issuer != issuer.Issuer {
			return jose.JSONWebKeySet{}, fmt.Errorf("the discovery document is that of issuer %.200q", found.Issuer)
		}
		if err := jwt.CheckURL(found.JWKSURI); err != nil {
			return jose.JSONWebKeySet{}, fmt.Errorf("the jwks_uri of the discovery document %w", err)
		}
		address = found.JWKSURI
	}
	document, err := get(ctx, client, address)
	if err != nil {
		return jose.JSONWebKeySet{}, err
	}
	set, others, err := jwt.ParseKeySet(document)
	if err != nil {
		return jose.JSONWebKeySet{}, fmt.Errorf("%s: %w", address, err)
	}
	k.noteSkipped(others)
	return set, nil
}

// noteSkipped logs how many keys of the issuer are of no use, whenever the number changes.
func (k *Keys) noteSkipped(others int) {
	if others != k.skipped && others > 0 {
		k.options.Logger.Warn("some keys of a trusted issuer cannot verify signatures or are not understood; they are left out", "issuer", k.options.Issuer.Name, "keys", others)
	}
	k.skipped = others
}

// client returns a client that sends its token only to the origin.
func (k *Keys) client(origin string) (*http.Client, error) {
	at, err := url.Parse(origin)
	if err != nil {
		return nil, fmt.Errorf("parse the address of the issuer: %w", err)
	}
	o := outbound.Options{Origin: at, MaxBody: maxDocument}
	if file := k.options.Issuer.CAFile; file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		o.RootCAs = x509.NewCertPool()
		if !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s has no PEM certificate", file)
		}
	}
	if file := k.options.Issuer.TokenFile; file != "" {
		token, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
		o.Headers = map[string]string{"Authorization": "Bearer " + strings.TrimSpace(string(token))}
	}
	return outbound.New(k.options.Network, o), nil
}

// get fetches a document.
func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", address)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", address, outbound.Describe(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", address, answer.StatusCode)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", address, outbound.Describe(err))
	}
	return body, nil
}
