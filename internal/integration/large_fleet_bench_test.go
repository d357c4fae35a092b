//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// fleetSize is the size of a fleet.
type fleetSize struct{ clusters, placements int }

var largeFleet = fleetSize{clusters: 10_000, placements: 100_000}

// BenchmarkLargeFleet reports what the built server needs for 10,000 rated
// clusters and 100,000 placements: how fast all decisions are made and durable,
// the time of a restart, its memory, and the time from a metric's new value to
// the decision on a watch.
//
//	go test -tags integration -run '^$' -bench LargeFleet -benchtime 200x ./integration
func BenchmarkLargeFleet(b *testing.B) {
	dir := b.TempDir()
	loadFleet(b, dir, largeFleet)
	p := startServer(b, dir, "--log-level", "error")
	decided := eventually.Within(b, 10*time.Minute, "every placement is decided", func() bool {
		return p.figure(b, `scheduler_decisions_total{result="moved"}`) == float64(largeFleet.placements)
	})
	firstPass := p.memories()
	p.stop()

	began := time.Now()
	p = startServer(b, dir, "--log-level", "error")
	restart := time.Since(began)
	time.Sleep(5 * time.Second) //nolint:forbidigo // the readings after a start: nothing shows that no decision follows
	if n := p.figure(b, `scheduler_decisions_total{result="moved"}`); n != 0 {
		b.Fatalf("the restart moved %v placements", n)
	}
	p.putWatched()
	b.ResetTimer()
	took := flips(b, p)
	b.StopTimer()
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
	b.ReportMetric(float64(largeFleet.placements)/decided.Seconds(), "decisions/s")
	b.ReportMetric(restart.Seconds(), "restart-s")
	for when, memories := range map[string]map[string]float64{"first-pass": firstPass, "restart": p.memories()} {
		for what, bytes := range memories {
			b.ReportMetric(bytes/(1<<20), when+"-"+what+"-MiB")
		}
	}
	b.ReportMetric(p.figure(b, "go_memstats_heap_inuse_bytes")/(1<<20), "heap-MiB")
	b.ReportMetric(p.figure(b, "process_cpu_seconds_total"), "cpu-s")
}

// putWatched writes a placement that moves with a metric, from one of two clusters to the other.
func (p *process) putWatched() {
	p.t.Helper()
	put(p, staticProvider("watched", map[string]float64{"left": 10, "right": 20}))
	for _, side := range []string{"left", "right"} {
		put(p, metric(side, "watched", side, api.FailureExclude))
		put(p, cluster(side, "watched", side))
	}
	put(p, placement("watched", "watched"))
}

// memories returns the maximum resident memory and the memory at rest: the part that belongs to the process, and the
// pages of its program and database. A server is at rest when it returns no more memory to the system.
func (p *process) memories() map[string]float64 {
	p.t.Helper()
	peak, last := p.memory("VmHWM"), 0.0
	for now := p.memory("VmRSS"); last == 0 || now < last-(4<<20); now = p.memory("VmRSS") {
		last = now
		time.Sleep(15 * time.Second) //nolint:forbidigo // longer than the interval at which memory is returned
	}
	return map[string]float64{"peak": peak, "rest": p.memory("VmRSS"), "rest-own": p.memory("RssAnon"), "rest-pages": p.memory("RssFile")}
}

// loadFleet writes the objects directly into a data directory, because writing them is not measured.
func loadFleet(b testing.TB, dir string, size fleetSize) {
	b.Helper()
	load := newLoader(b, dir)
	defer load.close()
	now := load.now
	values := map[string]float64{}
	for i := range size.clusters {
		values[fmt.Sprintf("m%d", i)] = float64(i*7919%9973) / 100
	}
	rates := staticProvider("rates", values)
	available := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	rates.Status = api.MetricsProviderStatus{ObservedGeneration: 1}
	api.SetCondition(&rates.Status.Conditions, available, now)
	load.write(rates, true)
	for i := range size.clusters {
		name := fmt.Sprintf("m%d", i)
		m := metric(name, "rates", name, api.FailureExclude)
		m.SetDefaults()
		m.Metadata.Generation = 1
		var ok bool
		if m.Status, ok = signal.ReadConstant(rates, m, now); !ok {
			b.Fatal("the metric has no value")
		}
		load.write(m, true)
		c := cluster(fmt.Sprintf("c%d", i), fmt.Sprintf("g%d", i%20), name)
		c.Spec.Allocatable = api.Quantities{"cpu": "64", "memory": "256Gi"}
		load.write(c, false)
	}
	for i := range size.placements {
		p := placement(fmt.Sprintf("p%d", i), fmt.Sprintf("g%d", i%20))
		p.Metadata.Namespace = fmt.Sprintf("team-%d", i%100)
		load.write(p, false)
	}
}

// flips changes a metric b.N times and returns, sorted, how long it took until the decision was on a watch.
func flips(b *testing.B, p *process) []time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	moved := make(chan string, 16)
	go func() {
		for event, err := range p.client.Watch(ctx, "", api.KindPlacement) {
			if err != nil {
				return
			}
			if placed := event.Object.(*api.Placement); placed.Metadata.Name == "watched" && len(placed.Status.Clusters) == 1 {
				moved <- placed.Status.Clusters[0]
			}
		}
	}()
	eventually.True(b, "the watch is open", func() bool { return p.figure(b, "scheduler_http_watchers") > 0 })
	var took []time.Duration
	for i := range b.N {
		want, value := "left", 30.0
		if i%2 == 1 {
			want, value = "right", 10
		}
		provider := staticProvider("watched", map[string]float64{"left": value, "right": 20})
		provider.SetDefaults()
		began := time.Now()
		if _, err := p.client.Put(ctx, provider, client.PutOptions{Wait: number(time.Duration(0))}); err != nil {
			b.Fatal(err)
		}
		for at := range moved {
			if at == want {
				break
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

// metrics returns the text of /metrics.
func (p *process) metrics(t testing.TB) string {
	t.Helper()
	resp, err := http.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// figure returns one series in /metrics.
func (p *process) figure(t testing.TB, series string) float64 {
	t.Helper()
	for line := range strings.Lines(p.metrics(t)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}
