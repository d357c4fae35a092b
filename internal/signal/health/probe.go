package health

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
)

// The reasons of a cluster's Ready condition.
const (
	reasonProbeSucceeded = "ProbeSucceeded"
	reasonProbeFailed    = "ProbeFailed"
	reasonHeartbeat      = "HeartbeatReceived"
	reasonSilent         = "HeartbeatsStopped"
)

// probe asks a cluster how it is, and stores what follows from the answer.
func (m *Monitor) probe(ctx context.Context, c *cluster) {
	m.mu.Lock()
	k, epoch := c.check, c.epoch
	if c.gone || k.mode != probed || ctx.Err() != nil {
		m.mu.Unlock()
		return
	}
	probing, cancel := context.WithTimeout(ctx, k.timeout())
	c.interrupt = cancel
	m.mu.Unlock()
	began := m.Now()
	o, message := m.ask(probing, k.url)
	ended := errors.Is(probing.Err(), context.Canceled)
	cancel()

	m.mu.Lock()
	if c.gone || c.epoch != epoch || ended {
		m.mu.Unlock()
		return
	}
	c.interrupt = nil
	now := m.Now()
	m.figures.probed(o, now.Sub(began))
	reason := reasonProbeFailed
	if o == success {
		reason = reasonProbeSucceeded
	}
	before := c.health.state
	c.become(c.health.after(o, k.thresholds), reason, message, now)
	if c.health.state != before {
		m.Logger.Info("cluster", "name", c.name, "state", c.health.state, "probe", message)
	}
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	c.unprobed = false
	c.probeAt = began.Add(time.Duration(float64(k.interval) * (1 - jitter*rand.Float64())))
	m.schedule(c)
	m.mu.Unlock()
	m.store(ctx, c)
}

// ask sends one probe. Only the status of the answer counts; the body is not
// read.
func (m *Monitor) ask(ctx context.Context, url string) (outcome, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return unreachable, "health.url is not an address"
	}
	req.Header.Set("User-Agent", "scheduler-server")
	resp, err := m.client.Do(req)
	if err != nil {
		if errors.Is(err, outbound.ErrRedirects) || errors.Is(err, outbound.ErrRedirectedAway) {
			return refused, "the probe was " + outbound.Describe(err)
		}
		return unreachable, "the probe failed: " + outbound.Describe(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		text := http.StatusText(resp.StatusCode)
		if text == "" {
			text = "an unknown status"
		}
		return refused, "the probe was answered with " + resp.Status[:min(3, len(resp.Status))] + " " + text
	}
	return success, "the probe succeeded"
}
