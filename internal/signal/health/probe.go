package health

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
)

// Reasons of the Ready condition of a probed cluster.
const (
	reasonProbeSucceeded = "ProbeSucceeded"
	reasonProbeFailed    = "ProbeFailed"
	reasonHeartbeat      = "HeartbeatReceived"
	reasonSilent         = "HeartbeatsStopped"
)

// probe probes a cluster and stores the result.
func (m *Monitor) probe(ctx context.Context, c *cluster) {
	probing, cancel, k, epoch := m.beginProbe(ctx, c)
	if probing == nil {
		return
	}
	defer cancel()
	began := m.Now()
	ctx, span := m.Tracer.Begin(ctx, "probe cluster", time.Now())
	defer span.End(nil)
	span.Object(string(api.KindCluster), "", c.name)
	o, message := m.ask(span.In(probing), k.url)
	ended := errors.Is(probing.Err(), context.Canceled)
	if !ended && m.endProbe(c, k, epoch, began, o, message) {
		m.store(ctx, c)
	}
}

// beginProbe returns the context of a probe, or nil if none is due, with the check and the
// cluster's epoch.
func (m *Monitor) beginProbe(ctx context.Context, c *cluster) (probing context.Context, cancel context.CancelFunc, k check, epoch int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, epoch = c.check, c.epoch
	if c.gone || k.mode != probed || ctx.Err() != nil {
		return nil, nil, k, epoch
	}
	probing, cancel = context.WithTimeout(ctx, k.timeout())
	c.interrupt = cancel
	return probing, cancel, k, epoch
}

// endProbe applies the result of a probe. It returns false if the cluster's check has changed
// since.
func (m *Monitor) endProbe(c *cluster, k check, epoch int, began time.Time, o outcome, message string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.gone || c.epoch != epoch {
		return false
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
	return true
}

// ask sends one probe. Only the status code of the response counts; the body is not read.
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
