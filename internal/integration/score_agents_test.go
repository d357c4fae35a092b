//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

const (
	agents       = 10_000
	agentPeriod  = time.Minute // in which every agent pushes once
	agentWorkers = 64
	soakTime     = 40 * time.Second
)

// pushed returns what an agent writes: a score that is valid for one and a half periods.
func pushed(cluster string, value int64) *api.PlacementScore {
	until := time.Now().UTC().Add(agentPeriod * 3 / 2).Truncate(time.Second)
	return &api.PlacementScore{
		Metadata: api.Metadata{Cluster: cluster, Name: "default"},
		Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"cpuratio": value}, ValidUntil: &until},
	}
}

// rankedPlacement returns a placement on the clusters of a group with the highest scores.
func rankedPlacement(name, group string, wanted int64, mode api.PrioritizerMode) *api.Placement {
	p := placement(name, group)
	p.Spec.RescheduleAfter, p.Spec.Metrics = "", nil
	p.Spec.NumberOfClusters = &wanted
	p.Spec.Strategy = api.StrategyPrioritizers
	p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: mode, Configurations: []api.PrioritizerConfig{
		{Type: api.PrioritizerAddon, ResourceName: "default", ScoreName: "cpuratio"},
	}}
	return p
}

// TestTenThousandAgents has the agents of ten thousand clusters push a score each minute, with 300 placements that rank
// by it, some only in an expression. Decisions must always follow within a second, and memory must not grow.
// SCHEDULER_TESTBED_SOAK makes the test longer than in continuous integration.
func TestTenThousandAgents(t *testing.T) {
	soak := soakTime
	if text := os.Getenv("SCHEDULER_TESTBED_SOAK"); text != "" {
		var err error
		if soak, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	load := newLoader(t, dir)
	for i := range agents {
		load.write(cluster(fmt.Sprintf("c%d", i), fmt.Sprintf("g%d", i%20)), false)
	}
	for i := range 300 {
		p := rankedPlacement(fmt.Sprintf("p%d", i), fmt.Sprintf("g%d", i%20), int64(i%5+1), []api.PrioritizerMode{api.ModeExact, api.ModeAdditive}[i%2])
		if i%30 == 7 {
			p.Spec.Predicates = []api.Predicate{{CEL: []string{`managedCluster.scores("default").exists(s, s.value > 90)`}}}
		}
		load.write(p, false)
	}
	load.write(cluster("left", "watched"), false)
	load.write(cluster("right", "watched"), false)
	load.write(rankedPlacement("watched", "watched", 1, api.ModeExact), false)
	load.close()
	p := startServer(t, dir, "--log-level", "error")

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	put(p, pushed("right", 0))
	put(p, pushed("left", -50))
	moved := watchDecision(ctx, t, p, "watched")

	// Every agent pushes once, as fast as the server accepts it, so that everything is in memory.
	var next, failed atomic.Int64
	push := func() {
		i := next.Add(1) - 1
		if _, err := p.client.Put(ctx, pushed(fmt.Sprintf("c%d", i%agents), i*7919%201-100), client.PutOptions{}); err != nil && ctx.Err() == nil {
			failed.Add(1)
		}
	}
	began := time.Now()
	var working sync.WaitGroup
	for range agentWorkers {
		working.Go(func() {
			for next.Load() < agents {
				push()
			}
		})
	}
	working.Wait()
	t.Logf("%d agents pushed once in %s: %.0f/s", agents, time.Since(began).Round(time.Millisecond), float64(next.Load())/time.Since(began).Seconds())

	// From now on at the agents' pace.
	pace := make(chan struct{}, agents)
	for range agentWorkers {
		working.Go(func() {
			for range pace {
				push()
			}
		})
	}
	pacing := time.NewTicker(10 * time.Millisecond)
	defer pacing.Stop()
	began = time.Now()
	sent, behind := 0, 0
	var took []time.Duration
	memory, cpu := 0.0, p.figure(t, "process_cpu_seconds_total")
	flipped, flips := time.Time{}, 0
	for time.Since(began) < soak {
		<-pacing.C
		for due := int(time.Since(began).Seconds() * agents / agentPeriod.Seconds()); sent < due; sent++ {
			pace <- struct{}{}
		}
		behind = max(behind, len(pace))
		if memory == 0 && time.Since(began) > soak/3 {
			memory = p.figure(t, "process_resident_memory_bytes")
		}
		if time.Since(flipped) < 200*time.Millisecond {
			continue
		}
		flips++
		want, value := "left", int64(50)
		if flips%2 == 0 {
			want, value = "right", -50
		}
		flipped = time.Now()
		put(p, pushed("left", value))
		for at := range moved {
			if at == want {
				break
			}
		}
		took = append(took, time.Since(flipped))
	}
	close(pace)
	working.Wait()
	seconds := time.Since(began).Seconds()
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	grown := p.figure(t, "process_resident_memory_bytes")
	t.Logf("%d pushes in %.0f s, at most %d waiting; a score to its decision on a watch: p50 %s, p99 %s, worst %s (%d); server CPU %.2f s per s; memory %.0f -> %.0f MiB",
		sent, seconds, behind, p50, p99, took[len(took)-1], len(took), (p.figure(t, "process_cpu_seconds_total")-cpu)/seconds, memory/(1<<20), grown/(1<<20))
	if n := failed.Load(); n > 0 {
		t.Errorf("%d pushes failed", n)
	}
	if grown > 1.25*memory {
		t.Errorf("memory grew from %.0f to %.0f MiB", memory/(1<<20), grown/(1<<20))
	}
}

// watchDecision delivers every cluster to which a placement with one cluster moves.
func watchDecision(ctx context.Context, t testing.TB, p *process, name string) <-chan string {
	t.Helper()
	moved := make(chan string, 64)
	open := make(chan struct{})
	go func() {
		first := true
		for event, err := range p.client.Watch(ctx, "", api.KindPlacement) {
			if err != nil {
				return
			}
			if first {
				close(open)
				first = false
			}
			if placed := event.Object.(*api.Placement); placed.Metadata.Name == name && len(placed.Status.Clusters) == 1 {
				moved <- placed.Status.Clusters[0]
			}
		}
	}()
	// An open watch shows only changes, so one is made.
	for {
		put(p, rankedPlacement("opens-the-watch", "nowhere", time.Now().UnixNano()%1000, api.ModeExact))
		select {
		case <-open:
			return moved
		case <-time.After(100 * time.Millisecond):
		}
	}
}
