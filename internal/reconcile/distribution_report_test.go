package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

func (y *system) workload(key api.Key) *api.Workload {
	y.t.Helper()
	entry := y.fleet.Snapshot().Get(key)
	if entry == nil {
		y.t.Fatalf("%s does not exist", key)
	}
	return entry.Object.(*api.Workload)
}

// TestReportsAreDurableWhenTheyAreTakenIn includes reports on objects that were written a moment ago.
func TestReportsAreDurableWhenTheyAreTakenIn(t *testing.T) {
	y, faulty := start(t)
	y.put(spotCluster("c0"))
	y.put(policy("base"))
	entry := y.put(workload("web", 3, distributed(api.ModeCustom, "1")))
	if got := splitText(&entry.Object.(*api.Workload).Status); got != "c0 3=1/2" {
		t.Fatalf("split %s, want c0 3=1/2", got)
	}
	for i := range 20 {
		name := fmt.Sprintf("w%d", i)
		revision := y.write(workload(name, 3, distributed(api.ModeCustom, "1")))
		if _, err := y.fleet.WaitRevision(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		key := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name}
		if err := y.reconciler.ReportDistributions(t.Context(), []DistributionReport{{key, has("c0", 3, 1, api.DistributionConverged)}}); err != nil {
			t.Fatal(err)
		}
		s := y.workload(key).Status
		if c := api.FindCondition(s.Conditions, api.ConditionDistributed); len(s.Distribution) != 1 || s.DecisionRevision != 1 || c == nil || c.Status != api.ConditionTrue {
			t.Fatalf("%s: unexpected status %+v", name, s)
		}
	}
	calls := len(faulty.written())
	again := []DistributionReport{{api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "w3"}, has("c0", 3, 1, api.DistributionConverged)}, {}}
	if err := y.reconciler.ReportDistributions(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if n := len(faulty.written()); n != calls {
		t.Errorf("known reports and reports about unknown workloads were written: %v", faulty.written()[calls:])
	}
	faulty.failNext(store.ErrUncertain)
	if err := y.reconciler.ReportDistributions(t.Context(), []DistributionReport{{shopWeb, has("c0", 3, 1, api.DistributionReplacing)}}); err != nil {
		t.Fatal(err)
	}
	if s := y.workload(shopWeb).Status; len(s.Distribution) != 1 || s.Distribution[0].State != api.DistributionReplacing {
		t.Errorf("observed %+v after a failed write, want c0 replacing", s.Distribution)
	}
}

// TestManyReportAtOnce checks that all reports are stored, and that none counts as a decision.
func TestManyReportAtOnce(t *testing.T) {
	y, _ := start(t)
	y.put(spotCluster("c0"))
	y.put(policy("base"))
	const workloads = 50
	for i := range workloads {
		y.write(workload(fmt.Sprintf("w%02d", i), 3, distributed(api.ModeCustom, "1")))
	}
	y.put(workload("last", 3))
	decisions := decided(t, y.reconciler)
	var reporting sync.WaitGroup
	for i := range workloads {
		reporting.Go(func() {
			key := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: fmt.Sprintf("w%02d", i)}
			for n := range int64(10) {
				report := has("c0", 3, 1, api.DistributionReplacing)
				report.Replaced = n
				if err := y.reconciler.ReportDistributions(t.Context(), []DistributionReport{{key, report}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reporting.Wait()
	for i := range workloads {
		s := y.workload(api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: fmt.Sprintf("w%02d", i)}).Status
		if len(s.Distribution) != 1 || s.Distribution[0].Replaced != 9 || s.DecisionRevision != 1 {
			t.Errorf("workload %d: status %+v, want one observation with 9 replaced pods", i, s)
		}
	}
	if n := decided(t, y.reconciler); n != decisions {
		t.Errorf("%v decisions were counted for observations", n-decisions)
	}
}

// decided returns the number of counted decisions.
func decided(t *testing.T, r *Reconciler) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.metrics.decisions)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, m := range families[0].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}

// TestARestartKeepsTheSplit and what was observed of it, and writes nothing.
func TestARestartKeepsTheSplit(t *testing.T) {
	y, faulty := start(t)
	y.put(spotCluster("c0"))
	y.put(cluster("c1", nil))
	y.put(policy("base"))
	y.put(workload("web", 3, distributed(api.ModeCustom, "1")))
	y.put(workload("plain", 3))
	reports := []DistributionReport{{shopWeb, has("c0", 3, 1, api.DistributionReplacing, "pod web-1 is replaced")}}
	if err := y.reconciler.ReportDistributions(t.Context(), reports); err != nil {
		t.Fatal(err)
	}
	before := y.workload(shopWeb).Status
	revision, err := y.store.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y.stop()
	calls := len(faulty.written())

	ctx, cancel := context.WithCancel(context.Background())
	f := fleet.New(fleet.Options{Store: y.store, Codec: y.codec})
	r := New(Options{Store: faulty, Codec: y.codec, Fleet: f, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.Run(ctx) })
	wg.Go(func() { _ = r.Run(ctx) })
	y.reconciler, y.fleet = r, f
	y.settle(revision)
	if err := r.ReportDistributions(t.Context(), reports); err != nil {
		t.Error(err)
	}
	after := y.workload(shopWeb).Status
	cancel()
	wg.Wait()
	if n := len(faulty.written()); n != calls {
		t.Errorf("the restart wrote %v", faulty.written()[calls:])
	}
	if !reflect.DeepEqual(before, after) || splitText(&after) != "c0 3=1/2, c1 3=1/2" {
		t.Errorf("status %+v,\nwant %+v as before the restart", after, before)
	}
}

// TestReportsEndWithTheirContext checks that a canceled report says what was not written.
func TestReportsEndWithTheirContext(t *testing.T) {
	y, _ := start(t)
	y.stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := y.reconciler.ReportDistributions(ctx, make([]DistributionReport, 3)); !errors.Is(err, context.Canceled) || err.Error() == context.Canceled.Error() {
		t.Errorf("error %v, want context.Canceled with a reason", err)
	}
}

// splitBench creates 100,000 workloads with a distribution on 1,000 clusters.
func splitBench(b *testing.B, workloads int) *planner {
	b.Helper()
	w, p := newWorld(), newPlanner(discard())
	for i := range 1_000 {
		c := regional(i, "1000")
		c.Spec.Spot = &api.SpotSpec{Enabled: true}
		w.write(p, c)
	}
	for i := range 1_000 {
		w.write(p, policy(fmt.Sprintf("p%04d", i), func(s *api.PropagationPolicySpec) {
			s.ResourceSelectors[0].LabelSelector = &api.LabelSelector{MatchLabels: map[string]string{"class": fmt.Sprint(i)}}
			s.Placement.ClusterAffinity = &api.ClusterAffinity{ClusterNames: []string{fmt.Sprintf("c%04d", i), fmt.Sprintf("c%04d", (i+1)%1_000)}}
			s.Placement.ReplicaScheduling = &api.ReplicaScheduling{}
		}))
	}
	for i := range workloads {
		w.write(p, workload(fmt.Sprintf("w%06d", i), 6, distributed(api.ModeCustom, "3"), func(w *api.Workload) {
			w.Metadata.Labels = map[string]string{"class": fmt.Sprint(i % 1_000)}
		}))
	}
	p.pass(epoch)
	return p
}

// BenchmarkReportDistribution takes in one report for one of many workloads, and runs the pass that follows. The cost
// does not grow with the number of workloads. Target: 50 µs, which is 20,000 a second.
func BenchmarkReportDistribution(b *testing.B) {
	for _, workloads := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("workloads=%d", workloads), func(b *testing.B) {
			p := splitBench(b, workloads)
			now, i := epoch, 0
			b.ReportAllocs()
			b.ResetTimer()
			begin := cputime.Used(b)
			for b.Loop() {
				n := i % workloads
				d := has(fmt.Sprintf("c%04d", n%1_000), 3, 1, api.DistributionReplacing)
				d.Replaced = int64(i)
				p.bindings.observeSplit(api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: fmt.Sprintf("w%06d", n)}, d, now)
				if writes := p.pass(now); len(writes) != 1 || !writes[0].observed {
					b.Fatalf("%d writes", len(writes))
				}
				i++
			}
			b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkReportDistributions reports on 1,000 of 20,000 workloads at a time, with the durable write.
func BenchmarkReportDistributions(b *testing.B) {
	y, _ := start(b)
	y.put(spotCluster("c0"))
	y.put(policy("base"))
	const workloads, batch = 20_000, 1_000
	var last int64
	for chunk := range slices.Chunk(slices.Collect(numbers(workloads)), 50) {
		var writes []store.Write
		for _, i := range chunk {
			w := workload(fmt.Sprintf("w%06d", i), 3, distributed(api.ModeCustom, "1"))
			w.SetDefaults()
			w.Metadata.UID, w.Metadata.Generation = fmt.Sprint(i), 1
			value, err := y.codec.EncodeSpec(w)
			if err != nil {
				b.Fatal(err)
			}
			writes = append(writes, store.Write{Key: api.KeyOf(w), Part: store.Spec, Value: value})
		}
		var err error
		if last, err = y.store.Commit(b.Context(), writes...); err != nil {
			b.Fatal(err)
		}
	}
	y.settle(last)
	i, sent := 0, 0
	b.ResetTimer()
	begin := time.Now()
	for b.Loop() {
		reports := make([]DistributionReport, batch)
		for n := range reports {
			d := has("c0", 3, 1, api.DistributionReplacing)
			d.Replaced = int64(i + 1)
			reports[n] = DistributionReport{api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: fmt.Sprintf("w%06d", (i*batch+n)%workloads)}, d}
		}
		if err := y.reconciler.ReportDistributions(b.Context(), reports); err != nil {
			b.Fatal(err)
		}
		i++
		sent += batch
	}
	b.ReportMetric(float64(sent)/time.Since(begin).Seconds(), "reports/s")
}

func numbers(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
