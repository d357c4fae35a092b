// Package certexpiry monitors the server's certificates: those that it presents, and those
// that it verifies others with. A certificate that has expired or expires soon causes a
// warning in the log, a metric, and a warning in the readiness checks.
package certexpiry

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// notice is how long before its expiry a certificate causes a warning: certificates of public
	// authorities have been renewed by then.
	notice = 30 * 24 * time.Hour
	// lookInterval is the interval between checks.
	lookInterval = time.Minute
	// repeatAfter is when a warning that still applies is logged again.
	repeatAfter = 24 * time.Hour
)

// Source is one use of certificates.
type Source struct {
	// Use names the use, such as "api".
	Use string
	// Read returns the certificates currently in use.
	Read func() ([]*x509.Certificate, error)
	// Notice is how long before the expiry there is a warning. Zero means 30 days.
	Notice time.Duration
}

// File returns a function that reads the certificates of a PEM file each time.
func File(path string) func() ([]*x509.Certificate, error) {
	return func() ([]*x509.Certificate, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return list, nil
	}
}

// Parse returns every certificate in PEM data.
func Parse(data []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, certificate)
	}
	return list, nil
}

// Finding is the state of one certificate, or of a use whose certificates cannot be read.
type Finding struct {
	Use         string
	Certificate *x509.Certificate // nil if none can be read
	// Problem is empty if there is none.
	Problem string
}

// name identifies a certificate. A renewed one has another serial number.
func (f Finding) name() string {
	if f.Certificate == nil {
		return f.Use
	}
	return f.Use + " " + f.Certificate.SerialNumber.Text(16) + " " + f.Certificate.Subject.String()
}

// Monitor monitors certificates. It is safe for concurrent use.
type Monitor struct {
	sources []Source
	logger  *slog.Logger
	now     func() time.Time

	mu sync.Mutex
	// logged are the problems that have been logged, by the name of the finding.
	logged map[string]logged
}

type logged struct {
	kind kind
	at   time.Time
}

// kind is the kind of problem with a certificate.
type kind int

const (
	sound kind = iota
	unreadable
	early
	expiring
	expired
)

// New returns a monitor of sources; Run makes it log.
func New(sources []Source, logger *slog.Logger, now func() time.Time) *Monitor {
	return &Monitor{sources: sources, logger: logger, now: now, logged: map[string]logged{}}
}

// Run logs problems until ctx is done.
func (m *Monitor) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		m.log(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Findings returns the current state of all certificates.
func (m *Monitor) Findings() []Finding {
	findings, _ := m.look()
	return findings
}

func (m *Monitor) look() ([]Finding, []kind) {
	now := m.now()
	var findings []Finding
	var kinds []kind
	add := func(f Finding, k kind) { findings, kinds = append(findings, f), append(kinds, k) }
	for _, source := range m.sources {
		list, err := source.Read()
		if err != nil {
			add(Finding{Use: source.Use, Problem: "cannot be read: " + err.Error()}, unreadable)
			continue
		}
		for _, certificate := range list {
			k, problem := judge(certificate, cmp.Or(source.Notice, notice), now)
			add(Finding{source.Use, certificate, problem}, k)
		}
	}
	return findings, kinds
}

func judge(c *x509.Certificate, notice time.Duration, now time.Time) (kind, string) {
	end := c.NotAfter.UTC().Format(time.RFC3339)
	left := c.NotAfter.Sub(now)
	switch {
	case now.Before(c.NotBefore):
		return early, fmt.Sprintf("%s is not valid before %s", c.Subject, c.NotBefore.UTC().Format(time.RFC3339))
	case left < 0:
		return expired, fmt.Sprintf("%s expired at %s, %s ago", c.Subject, end, rough(-left))
	case left < notice:
		return expiring, fmt.Sprintf("%s expires at %s, in %s", c.Subject, end, rough(left))
	}
	return sound, ""
}

// rough formats a duration approximately.
func rough(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return d.Round(time.Minute).String()
}

// log logs problems that are new or were last logged a day ago, and problems that are over.
func (m *Monitor) log(ctx context.Context) {
	findings, kinds := m.look()
	m.mu.Lock()
	defer m.mu.Unlock()
	now, seen := m.now(), map[string]bool{}
	for i, f := range findings {
		name, k := f.name(), kinds[i]
		if k == sound || seen[name] {
			continue
		}
		seen[name] = true
		if before, ok := m.logged[name]; ok && before.kind == k && now.Sub(before.at) < repeatAfter {
			continue
		}
		m.logged[name] = logged{k, now}
		level := slog.LevelWarn
		if k == expired {
			level = slog.LevelError
		}
		m.logger.Log(ctx, level, "a certificate of the server needs attention", "certificate", f.Use, "problem", f.Problem)
	}
	for name := range m.logged {
		if !seen[name] {
			delete(m.logged, name)
			m.logger.InfoContext(ctx, "a certificate of the server no longer needs attention", "certificate", name)
		}
	}
}

var expiryTime = prometheus.NewDesc("scheduler_certificate_expiry_timestamp_seconds",
	"When each certificate of the server expires.", []string{"certificate", "subject", "serial"}, nil)

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(out chan<- *prometheus.Desc) { out <- expiryTime }

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(out chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, f := range m.Findings() {
		if f.Certificate == nil || seen[f.name()] {
			continue
		}
		seen[f.name()] = true
		metric, err := prometheus.NewConstMetric(expiryTime, prometheus.GaugeValue, float64(f.Certificate.NotAfter.Unix()),
			f.Use, strings.ToValidUTF8(f.Certificate.Subject.String(), "?"), f.Certificate.SerialNumber.Text(16))
		if err != nil {
			metric = prometheus.NewInvalidMetric(expiryTime, err)
		}
		out <- metric
	}
}
