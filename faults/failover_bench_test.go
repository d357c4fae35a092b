//go:build faults

package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkFailover measures how long no server decides after the leader of three servers was killed or stopped, during
// writes: until another server has made a decision. On peers, led-both counts how often the leader led the cluster of
// stores as well.
func BenchmarkFailover(b *testing.B) {
	tappedBinary, err := tapped()
	if err != nil {
		b.Fatal(err)
	}
	for _, store := range []struct {
		name, binary string
		on           func(*ensemble)
	}{{"etcd", serverBinary, onEtcd}, {"peers", tappedBinary, onThemselves}} {
		for _, way := range []struct {
			name   string
			signal syscall.Signal
		}{{"killed", syscall.SIGKILL}, {"stopped", syscall.SIGTERM}} {
			b.Run(fmt.Sprintf("store=%s/leader=%s", store.name, way.name), func(b *testing.B) {
				e := newEnsemble(b, &fault{t: b}, store.binary, store.on, unwrapped)
				e.startWriting()
				var took []time.Duration
				both := 0
				for b.Loop() {
					b.StopTimer()
					e.awaitWrites(20)
					r := e.leader()
					if e.members == nil && e.storeLeader() == r {
						both++
					}
					since := e.record.counts()
					b.StartTimer()
					began := time.Now()
					r.signal(way.signal)
					e.otherDecisions(since, r)
					took = append(took, time.Since(began))
					b.StopTimer()
					<-r.exited
					e.launch(r)
					b.StartTimer()
				}
				e.stopWriting()
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-median")
				b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms-max")
				b.ReportMetric(float64(both), "led-both")
				load, err := os.ReadFile("/proc/loadavg")
				if err != nil {
					b.Fatal(err)
				}
				b.Logf("%v; load %s", took, strings.TrimSpace(string(load)))
			})
		}
	}
}
