package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// fleetModel is a fleet of clusters with metrics and of placements, as the recorder gets it.
type fleetModel struct {
	objects map[partKey]store.Record
	random  *rand.Rand
	now     time.Time
	counter int64
}

func (f *fleetModel) put(key api.Key, part store.Part, value []byte) store.Record {
	f.counter++
	record := store.Record{Key: key, Part: part, Value: value, CreateRevision: 1, ModRevision: f.counter}
	f.objects[partKey{key, part}] = record
	return record
}

func clusterKey(n int) api.Key {
	return api.Key{Kind: api.KindCluster, Name: fmt.Sprintf("cluster-%04d", n)}
}
func placementKey(n int) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: fmt.Sprintf("team-%02d", n%40), Name: fmt.Sprintf("app-%05d", n)}
}

func uid(n int) string { return fmt.Sprintf("%08x-5a5e-4c1f-b9f0-%012x", n*2654435761%(1<<32), n*7919) }

func (f *fleetModel) clusterStatus(n int) store.Record {
	metrics := ""
	for _, name := range []string{"load", "price", "carbon"} {
		v := f.random.Float64() * 100
		metrics += fmt.Sprintf(`,{"name":%q,"weight":1,"value":%.4f,"normalized":%.6f,"observed_at":%q}`, name, v, v/100, f.now.Format(time.RFC3339))
	}
	return f.put(clusterKey(n), store.Status, fmt.Appendf(nil,
		`{"observed_generation":1,"state":"online","conditions":[{"type":"Online","status":"True","reason":"Probed","last_transition_at":"2026-02-01T00:00:00Z"}],"allocatable":{"cpu":"512","memory":"2Ti"},"allocated":{"cpu":"%d","memory":"%dGi"},"metrics":[%s],"last_heartbeat_at":%q}`,
		f.random.IntN(512), f.random.IntN(2048), metrics[1:], f.now.Format(time.RFC3339)))
}

func (f *fleetModel) placementStatus(n, cluster, times int) store.Record {
	return f.put(placementKey(n), store.Status, fmt.Appendf(nil,
		`{"observed_generation":2,"conditions":[{"type":"Scheduled","status":"True","reason":"Decided","last_transition_at":"2026-02-01T00:00:00Z"},{"type":"Satisfied","status":"True","reason":"Satisfied","last_transition_at":"2026-02-01T00:00:00Z"}],"clusters":["cluster-%04d"],"decisions":[{"cluster":"cluster-%04d","score":%.6f,"rank":1}],"scheduled_at":%q,"decision_revision":%d}`,
		cluster, cluster, f.random.Float64(), f.now.Format(time.RFC3339Nano), times))
}

// BenchmarkBytesPerMove measures what a move takes in the store once it is sealed: its record, what it was decided on,
// indexes and checkpoints. 1,000 clusters, 10,000 placements; before each pass, metrics of some clusters have changed,
// and some placements move. Target: at most 300 bytes where as many clusters change as placements move.
func BenchmarkBytesPerMove(b *testing.B) {
	for _, shape := range []struct{ clusters, moves, passes int }{{1, 1, 2000}, {1, 10, 1000}, {10, 10, 1000}, {100, 100, 200}, {100, 10, 500}} {
		b.Run(fmt.Sprintf("%d clusters change, %d placements move", shape.clusters, shape.moves), func(b *testing.B) {
			for range b.N {
				b.ReportMetric(bytesPerMove(b, shape.clusters, shape.moves, shape.passes*shape.moves), "bytes/move")
			}
		})
	}
}

func bytesPerMove(b *testing.B, clusters, moves, total int) float64 {
	w := newWorld(b)
	w.size = 1 << 30
	w.log = w.newLog(w.flaky)
	w.log.log.most, w.log.inputs.most, w.log.sealBytes = sealLogs, sealInputs, sealBytes
	f := &fleetModel{objects: map[partKey]store.Record{}, random: rand.New(rand.NewPCG(1, 2)), now: w.now}
	for n := range 1000 {
		f.put(clusterKey(n), store.Spec, fmt.Appendf(nil, `{"metadata":{"name":"cluster-%04d","labels":{"region":"r%d","tier":"t%d"},"uid":%q,"generation":1},"spec":{"region":"r%d","metrics":[{"name":"load","weight":1},{"name":"price","weight":1},{"name":"carbon","weight":1}]}}`, n, n%24, n%4, uid(n), n%24))
		f.clusterStatus(n)
	}
	at := map[int]int{}
	for n := range 10_000 {
		f.put(placementKey(n), store.Spec, fmt.Appendf(nil, `{"metadata":{"name":"app-%05d","namespace":"team-%02d","uid":%q,"generation":2},"spec":{"number_of_clusters":1,"label_constraints":["tier is t%d"],"strategy":"metrics","metrics":{"stickiness":0.1}}}`, n, n%40, uid(n), n%4))
		f.placementStatus(n, n%1000, 1)
		at[n] = n % 1000
	}
	record := func(changed []store.Record) {
		if err := w.log.Record(w.ctx, Pass{Revision: f.counter, Time: f.now, Changed: slices.Values(changed), All: maps.Values(f.objects)}); err != nil {
			b.Fatal(err)
		}
		select {
		case c := <-w.log.recorder.due:
			if err := w.log.recorder.make(w.ctx, c); err != nil {
				b.Fatal(err)
			}
		default:
		}
	}
	record(slices.Collect(maps.Values(f.objects)))
	w.sealed(w.log.log)
	w.sealed(w.log.inputs)
	before, _, err := w.log.readHead(w.ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	var changed []store.Record
	times := 1
	for done := 0; done < total; done += moves {
		f.now = f.now.Add(1500 * time.Millisecond)
		w.now = f.now
		cause := 0
		for range clusters {
			cause = f.random.IntN(1000)
			changed = append(changed, f.clusterStatus(cause))
		}
		record(changed)
		changed = changed[:0]
		records := map[api.Key][]byte{}
		times++
		for range moves {
			n, to := f.random.IntN(10_000), f.random.IntN(1000)
			status := f.placementStatus(n, to, times) // the record has it, so that the next pass leaves it out
			key := placementKey(n)
			records[key] = fmt.Appendf(nil,
				`{"revision":0,"time":%q,"object":{"kind":"placement","namespace":%q,"name":%q,"uid":%q},"before":{"clusters":["cluster-%04d"]},"after":{"clusters":["cluster-%04d"]},"moved":[{"from":"cluster-%04d","to":"cluster-%04d"}],"cause":{"type":"metric","object":{"kind":"cluster","name":"cluster-%04d"},"field":"status.metrics.load","old":"%.4f","new":"%.4f"},"margin":{"old_score":%.6f,"new_score":%.6f,"needed":0},"status":%s}`,
				f.now.Format(time.RFC3339Nano), key.Namespace, key.Name, uid(n), at[n], to, at[n], to, cause, f.random.Float64()*100, f.random.Float64()*100, f.random.Float64(), f.random.Float64(), status.Value)
			at[n] = to
		}
		w.decide(records)
		for _, j := range []*journal{w.log.log, w.log.inputs} {
			if done/moves%50 == 0 {
				if _, err := w.log.seal(w.ctx, j); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	w.sealed(w.log.log)
	w.sealed(w.log.inputs)
	after, _, err := w.log.readHead(w.ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.Log.Bytes-before.Log.Bytes)/float64(total), "record-bytes/move")
	return float64(after.Log.Bytes+after.Inputs.Bytes-before.Log.Bytes-before.Inputs.Bytes) / float64(total)
}

// BenchmarkReadByObject measures reading the last decisions of one object of 10,000, of a log of 200,000 records.
func BenchmarkReadByObject(b *testing.B) {
	w := newWorld(b)
	w.log.log.most, w.log.inputs.most, w.log.sealBytes = sealLogs, sealInputs, sealBytes
	for n := range 2000 {
		records := map[api.Key][]byte{}
		for i := range 100 {
			key := placementKey((n*101 + i) % 10_000)
			records[key] = w.entry(key, "c1", "c2", "metric", n)
		}
		w.decide(records)
		if n%50 == 0 {
			w.log.tend(w.ctx)
		}
	}
	for b.Loop() {
		page, err := w.log.Read(w.ctx, Query{Kind: api.KindPlacement, Namespace: "team-01", Name: "app-00041", Newest: true, Limit: 10})
		if err != nil || len(page.Items) != 10 {
			b.Fatal(len(page.Items), err)
		}
	}
}
