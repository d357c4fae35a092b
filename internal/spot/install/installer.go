// Package install installs the admission webhook in a cluster: it writes the two webhook
// configurations, keeps them up to date, and checks whether the API server of the cluster reaches
// the webhook.
package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

const (
	// callTimeout is the timeout of every request; a webhook call is part of one.
	callTimeout = 10 * time.Second
	// probeInterval is the interval between probes while they succeed.
	probeInterval = time.Minute
	// settleTime is how long an API server may take to notice a configuration.
	settleTime = 10 * time.Second
	// defaultInterval is the default interval between checks of the configurations.
	defaultInterval = 15 * time.Second
	// maxRepairs is how many consecutive repairs are made before another party is reported to be
	// changing the configurations.
	maxRepairs = 3
	// quietFor is how long they must be unchanged for that to be over.
	quietFor = 45 * time.Second
	// mostContested is the maximum interval between checks in that case.
	mostContested = 2 * time.Minute
	// fieldManager owns the fields of the configurations.
	fieldManager = "scheduler-server"
)

// installAgain is the backoff after a failure.
var installAgain = backoff.Backoff{First: time.Second, Most: 30 * time.Second}

// Options configures an Installer. Client, BaseURL and Bundle are required.
type Options struct {
	// Client is the client of the cluster.
	Client kubernetes.Interface
	// Cluster is the name of the cluster, for logs.
	Cluster string
	// BaseURL is where the cluster reaches the webhook: https://host:port/clusters/<name>/<secret>.
	// The last part is never shown.
	BaseURL string
	// Bundle returns the PEM of the authorities that the cluster must trust, and a channel that is
	// closed when that changes.
	Bundle func() (bundle []byte, changed <-chan struct{})
	// ExcludeNamespaces are excluded, in addition to the system's namespaces.
	ExcludeNamespaces []string
	// Timeout is how long the API server waits for the webhook, in full seconds. Zero means DefaultTimeout.
	Timeout time.Duration
	// Interval is the interval between checks of the configurations. Zero means 15 seconds.
	Interval time.Duration
	// Logger receives every change of the state. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Installer keeps the webhook installed in one cluster. Run and Remove must not be called
// concurrently.
type Installer struct {
	options Options
	host    string // of the webhook, with scheme: the part of its address that may be shown
	path    string // of its address, unique to the cluster
	secret  string // the last part of the path

	mutatingKeeper   *keeper[admissionv1.MutatingWebhookConfiguration]
	validatingKeeper *keeper[admissionv1.ValidatingWebhookConfiguration]
	writtenAt        time.Time // when a configuration was last written
	probedAt         time.Time // when a probe last succeeded
	failures         int       // consecutive
	repairs          int       // consecutive, in quick succession
	repairedAt       time.Time // time of the last one

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced when state changes
}

// New returns an installer, which does nothing until Run.
func New(o Options) (*Installer, error) {
	if o.Client == nil || o.Bundle == nil {
		return nil, errors.New("install: Client and Bundle are required")
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil {
		return nil, errors.New("install: the address of the webhook is not a URL") // the cause would contain it
	}
	secret := base.Path[strings.LastIndexByte(base.Path, '/')+1:]
	if base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" || secret == "" {
		return nil, errors.New("install: the address of the webhook must have the form https://host:port/clusters/<name>/<secret>")
	}
	o.ExcludeNamespaces = slices.Clone(o.ExcludeNamespaces)
	o.Interval, o.Timeout = cmp.Or(o.Interval, defaultInterval), cmp.Or(o.Timeout, DefaultTimeout)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	registration := o.Client.AdmissionregistrationV1()
	i := &Installer{
		options: o, host: "https://" + base.Host, path: base.Path, secret: secret,
		mutatingKeeper:   newMutating(registration.MutatingWebhookConfigurations()),
		validatingKeeper: newValidating(registration.ValidatingWebhookConfigurations()),
		changed:          make(chan struct{}),
	}
	i.state = State{Reason: reasonInstalling, Message: "the webhook at " + i.host + " has not been installed yet"}
	return i, nil
}

// State returns the last state.
func (i *Installer) State() State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state
}

// Changed returns a channel that is closed at the next change of the state. Call it before State,
// or a change in between is missed.
func (i *Installer) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}

// Run keeps the webhook installed until ctx is done. It does not uninstall it.
func (i *Installer) Run(ctx context.Context) error {
	for {
		bundle, changed := i.options.Bundle()
		wait := i.pass(ctx, bundle)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // canceled, not failed
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pass checks everything once and returns when to do so again.
func (i *Installer) pass(ctx context.Context, bundle []byte) time.Duration {
	if len(bundle) == 0 {
		return i.failed(ctx, State{Reason: reasonInstalling, Message: "there is no certificate authority yet that the cluster could trust"})
	}
	changed, errs := i.keep(ctx, bundle)
	if len(errs) > 0 {
		return i.failed(ctx, i.stateOfAll(errs))
	}
	if i.repairs >= maxRepairs {
		i.failures = max(i.failures, 1) // so that it is probed when that is over
		i.put(ctx, State{Reason: reasonContested, Message: "something else keeps changing the webhook configurations " + configurationName +
			": is the cluster registered a second time, here or with another server?"})
		// Do not race: the other party does not give in either.
		return min(i.options.Interval<<min(i.repairs-maxRepairs+1, 10), mostContested)
	}
	if changed || i.failures > 0 || i.options.Now().Sub(i.probedAt) >= probeInterval-i.options.Interval/2 {
		found := i.probe(ctx)
		if !found.Ready {
			return i.failed(ctx, found)
		}
		i.probedAt = i.options.Now()
		i.failures = 0
		i.put(ctx, found)
	}
	// Not all clusters at once.
	return i.options.Interval - rand.N(i.options.Interval/10+1)
}

// keep updates both configurations, and reports whether one was different. Both are tried, so that
// the state can name all missing permissions.
func (i *Installer) keep(ctx context.Context, bundle []byte) (changed bool, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	mutating, errMutating := i.mutatingKeeper.keep(ctx, i.mutating(bundle))
	validating, errValidating := i.validatingKeeper.keep(ctx, i.validating(bundle))
	switch now := i.options.Now(); {
	case mutating != repaired && validating != repaired:
		if now.Sub(i.repairedAt) > quietFor {
			i.repairs = 0
		}
	default:
		i.repairs++
		i.repairedAt = now
		if i.repairs > maxRepairs {
			break // already reported
		}
		i.options.Logger.Warn("the webhook configuration was changed or deleted by something else; restoring it",
			"cluster", i.options.Cluster, "name", configurationName)
	}
	if changed = mutating != asWanted || validating != asWanted; changed {
		i.writtenAt = i.options.Now()
	}
	for _, err := range []error{errMutating, errValidating} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return changed, errs
}

// failed records a failed attempt and returns the delay before the next. While the state is good, a
// single failure that may be temporary does not change it.
func (i *Installer) failed(ctx context.Context, found State) time.Duration {
	i.failures++
	if !i.State().Ready || i.failures > 1 || !found.passing() {
		i.put(ctx, found)
	}
	return installAgain.After(i.failures)
}

// put sets the state, and logs it if it has changed.
func (i *Installer) put(ctx context.Context, s State) {
	if ctx.Err() != nil {
		return // failures because of cancellation mean nothing
	}
	i.mu.Lock()
	old := i.state
	if old != s {
		i.state = s
		close(i.changed)
		i.changed = make(chan struct{})
	}
	i.mu.Unlock()
	level := slog.LevelWarn
	if s.Ready || s.Reason == reasonInstalling || s.Reason == reasonRemoved {
		level = slog.LevelInfo
	}
	if old != s {
		i.options.Logger.Log(ctx, level, "admission webhook", "cluster", i.options.Cluster, "reason", s.Reason, "message", s.Message, "detail", s.Detail)
	}
}

// Remove uninstalls the webhook; pods are then created unchanged. It succeeds if nothing is
// installed. If another registration of the same cluster has replaced our configurations, they
// stay.
func (i *Installer) Remove(ctx context.Context) error {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var errs []error
	for _, remove := range []func(context.Context, string) error{i.mutatingKeeper.remove, i.validatingKeeper.remove} {
		if err := remove(callCtx, i.path); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("remove the admission webhook from cluster %s: %s", i.options.Cluster, i.stateOfAll(errs).Message)
	}
	i.failures, i.probedAt = 0, time.Time{}
	i.put(ctx, State{Reason: reasonRemoved, Message: "the webhook is not installed"})
	return nil
}
