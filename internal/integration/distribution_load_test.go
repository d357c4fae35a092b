//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	corev1 "k8s.io/api/core/v1"
)

const (
	loadPods      = 10_000
	loadWorkloads = 100
	loadRate      = 200 // pods per second
	loadTime      = 20 * time.Second
)

// buckets returns a histogram, summed over its series: for each limit, the number of values up to it.
func (p *process) buckets(t testing.TB, name string) map[float64]float64 {
	t.Helper()
	out := map[float64]float64{}
	for line := range strings.Lines(p.metrics(t)) {
		series, value, found := strings.Cut(strings.TrimSpace(line), "} ")
		if _, limit, is := strings.Cut(series, `le="`); found && is && strings.HasPrefix(series, name+"_bucket{") {
			limit, _, _ = strings.Cut(limit, `"`)
			le, err := strconv.ParseFloat(limit, 64) // "+Inf" is one, too
			n, err2 := strconv.ParseFloat(value, 64)
			if err != nil || err2 != nil {
				t.Fatalf("%q: got %v, %v", line, err, err2)
			}
			out[le] += n
		}
	}
	return out
}

// quantile returns the limit of the bucket that contains a quantile of the values between two readings, and the number
// of these values.
func quantile(before, after map[float64]float64, q float64) (limit, values float64) {
	values = after[math.Inf(1)] - before[math.Inf(1)]
	for _, limit := range slices.Sorted(maps.Keys(after)) {
		if after[limit]-before[limit] >= q*values {
			return limit, values
		}
	}
	return math.Inf(1), values
}

// TestDistributionLoad has the controllers create 200 pods per second for some time, and then as many as they can until
// there are 10,000. Every pod must be assigned in time, and no workload may have too many pods for on-demand nodes.
// Duration and memory are logged, but not checked. The pods are not scheduled, so that the machine is free for the
// webhook.
func TestDistributionLoad(t *testing.T) {
	s := startSplitCluster(t, 1, 1)
	s.startServer("--webhook-timeout", "30s") // however busy the machine is
	s.register()
	s.namespace("load", nil)
	workloads := make([]workloadID, loadWorkloads)
	const perWorkload = loadPods / loadWorkloads
	for i := range workloads {
		workloads[i] = s.create(manifest{
			workloadID: workloadID{"Deployment", "load", fmt.Sprintf("w%02d", i)}, labels: enabled("custom", "30"),
			pod: func(pod *corev1.PodTemplateSpec) { pod.Spec.SchedulerName = "nobody" },
		})
	}
	const histogram = "scheduler_spot_webhook_duration_seconds"
	empty, before := memory(t, s.server), s.server.buckets(t, histogram)
	created := func() (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, pod := range s.present {
			if pod.workload.namespace == "load" {
				n++
			}
		}
		return n
	}

	steps := int(loadTime.Seconds()) * loadRate / perWorkload
	step := time.NewTicker(loadTime / time.Duration(steps))
	defer step.Stop()
	began := time.Now()
	for i := range steps {
		s.scale(workloads[i], perWorkload)
		<-step.C
	}
	eventually.True(t, "the first pods exist", func() bool { return created() == steps*perWorkload })
	took := time.Since(began)
	report := func(what string, before, after map[float64]float64, pods int, took time.Duration) {
		t.Helper()
		p50, _ := quantile(before, after, 0.5)
		p99, n := quantile(before, after, 0.99)
		t.Logf("%s: %d pods in %s (%.0f per second), %.0f requests answered: p50 ≤ %g ms, p99 ≤ %g ms", what, pods, took.Round(time.Millisecond), float64(pods)/took.Seconds(), n, p50*1e3, p99*1e3)
		if n < float64(pods) {
			t.Errorf("%d pods were created, but the webhook answered only %.0f requests", pods, n)
		}
	}
	after := s.server.buckets(t, histogram)
	report("at a steady rate", before, after, steps*perWorkload, took)

	began = time.Now()
	for _, w := range workloads[steps:] {
		s.scale(w, perWorkload)
	}
	eventually.True(t, "all pods exist", func() bool { return created() == loadPods })
	took = time.Since(began)
	report("as fast as the controllers are", after, s.server.buckets(t, histogram), loadPods-steps*perWorkload, took)

	full := memory(t, s.server)
	t.Logf("memory of the server: %d MiB before, %d MiB with %d pods: %.1f KiB per pod", empty>>10, full>>10, loadPods, float64(full-empty)/loadPods)
	for _, w := range workloads {
		labels := map[string]int{}
		for _, pod := range s.podsOf(w) {
			labels[pod.affinity]++
		}
		if most := s.most(w, onDemandNode); labels[onDemandNode] != 30 || labels[spotNode] != perWorkload-30 || most > 30 {
			t.Errorf("the pods of %s have the labels %v, with up to %d for on-demand nodes at a time", w, labels, most)
		}
	}
	s.apiServerFailures(t)
}

// apiServerFailures checks that the API server never proceeded without a response from the webhook.
func (s *splitCluster) apiServerFailures(t *testing.T) {
	t.Helper()
	resp, err := s.http.Get("https://" + s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("apiserver_admission_webhook_fail_open_count{")) {
			t.Errorf("the API server continued without an answer: %s", line)
		}
		asked = asked || bytes.HasPrefix(line, []byte("apiserver_admission_webhook_request_total{"))
	}
	if !asked {
		t.Error("the API server counts no requests to webhooks")
	}
}
