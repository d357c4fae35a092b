package fleet

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// benchCluster and benchPlacement create objects of realistic size.
func benchCluster(i int) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprintf("cluster-%05d", i), UID: fmt.Sprintf("7c9e6679-7425-40de-944b-%012d", i), Generation: 1,
		Labels: map[string]string{"location": []string{"DE", "FR", "US"}[i%3], "tier": []string{"gold", "silver"}[i%2], "zone": fmt.Sprintf("z%d", i%50)}}}
	c.Spec.Region = fmt.Sprintf("region-%d", i%20)
	c.Spec.CustomResources = []string{"crontabs.stable.example.com"}
	c.Spec.Metrics = []api.MetricRef{{Name: fmt.Sprintf("load-%d", i)}, {Name: "latency"}}
	c.Spec.Allocatable = api.Quantities{"cpu": "64", "memory": "256Gi"}
	c.SetDefaults()
	c.Status.State = api.StateOnline
	return c
}

func benchPlacement(i int) *api.Placement {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newPlacement(fmt.Sprintf("team-%03d", i%200), fmt.Sprintf("app-%06d", i))
	p.Metadata.UID = fmt.Sprintf("7c9e6679-7425-40de-944b-%012d", i)
	p.Metadata.Labels = map[string]string{"app": fmt.Sprintf("app-%06d", i), "team": fmt.Sprintf("team-%03d", i%200)}
	p.Metadata.CreatedAt, p.Metadata.ModifiedAt = &at, &at
	three := int64(3)
	p.Spec.NumberOfClusters = &three
	p.Spec.LabelConstraints = []string{"location is DE", "tier in (gold, silver)"}
	p.Spec.ResourceRequests = api.Quantities{"cpu": "500m", "memory": "1Gi"}
	p.Status = benchStatus(i, 0)
	return p
}

func benchStatus(i, round int) api.PlacementStatus {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := api.PlacementStatus{ObservedGeneration: 1, ScheduledAt: &at, DecisionRevision: int64(round)}
	for n := range 3 {
		name := fmt.Sprintf("cluster-%05d", (i*7+n*3000+round)%10000)
		s.Clusters = append(s.Clusters, name)
		s.Decisions = append(s.Decisions, api.Decision{Cluster: name, Score: 1 / float64(n+2), Rank: int64(n + 1), Since: &at})
	}
	api.SetCondition(&s.Conditions, api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}, at)
	return s
}

// memoryStore is a store that only loads, so that only the fleet is measured.
type memoryStore struct {
	records []store.Record
}

func (m *memoryStore) Load(_ context.Context, _ int64, fn func(store.Record) error) (int64, error) {
	for _, r := range m.records {
		if err := fn(r); err != nil {
			return 0, err
		}
	}
	return int64(len(m.records)), nil
}

func (m *memoryStore) Watch(ctx context.Context, _ int64) <-chan store.Batch {
	out := make(chan store.Batch)
	context.AfterFunc(ctx, func() { close(out) })
	return out
}

func (m *memoryStore) RequestProgress(context.Context) error { return nil }

// benchRecords returns the records of some clusters and placements, specs first.
func benchRecords(b *testing.B, codec *store.Codec, clusters, placements int) []store.Record {
	objects := make([]api.Object, 0, clusters+placements)
	for i := range clusters {
		objects = append(objects, benchCluster(i))
	}
	for i := range placements {
		objects = append(objects, benchPlacement(i))
	}
	var records []store.Record
	for _, part := range []store.Part{store.Spec, store.Status} {
		for _, object := range objects {
			encode := codec.EncodeSpec
			if part == store.Status {
				encode = codec.EncodeStatus
			}
			value, err := encode(object)
			if err != nil {
				b.Fatal(err)
			}
			records = append(records, store.Record{Key: api.KeyOf(object), Part: part, Value: value, ModRevision: int64(len(records) + 1)})
		}
	}
	return records
}

func benchCodec(b *testing.B) *store.Codec {
	codec, err := store.NewCodec(make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	return codec
}

// BenchmarkFleetLoad100k builds the first snapshot of 10,000 clusters and 100,000 placements, and reports the memory it
// uses.
func BenchmarkFleetLoad100k(b *testing.B) {
	codec := benchCodec(b)
	m := &memoryStore{benchRecords(b, codec, 10_000, 100_000)}
	var kept *Fleet
	b.ResetTimer()
	for range b.N {
		f := New(Options{Store: m, Codec: codec})
		before := heap(b)
		if err := f.load(context.Background(), true); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap(b)-before)/(1<<20), "MiB")
		kept = f
	}
	runtime.KeepAlive(kept)
}

// heap returns the size of the live heap, measured with the timer stopped.
func heap(b *testing.B) int64 {
	b.StopTimer()
	defer b.StartTimer()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkFleetApply applies 100 new decisions in one batch to a snapshot with 100,000 placements.
func BenchmarkFleetApply(b *testing.B) {
	codec := benchCodec(b)
	m := &memoryStore{benchRecords(b, codec, 10_000, 100_000)}
	f := New(Options{Store: m, Codec: codec})
	if err := f.load(context.Background(), true); err != nil {
		b.Fatal(err)
	}
	const size = 100
	batches := make([]store.Batch, 100)
	for n := range batches {
		for i := range size {
			p := benchPlacement((n*size + i) * 7 % 100_000)
			p.Status = benchStatus(i, n)
			value, err := codec.EncodeStatus(p)
			if err != nil {
				b.Fatal(err)
			}
			batches[n].Records = append(batches[n].Records, store.Record{Key: api.KeyOf(p), Part: store.Status, Value: value})
		}
	}
	revision := f.Snapshot().Revision()
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		revision++
		batch := batches[n%len(batches)]
		batch.Revision = revision
		for i := range batch.Records {
			batch.Records[i].ModRevision = revision
		}
		f.apply(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/object")
}

// BenchmarkFleetGet reads one object of 100,000.
func BenchmarkFleetGet(b *testing.B) {
	codec := benchCodec(b)
	f := New(Options{Store: &memoryStore{benchRecords(b, codec, 0, 100_000)}, Codec: codec})
	if err := f.load(context.Background(), true); err != nil {
		b.Fatal(err)
	}
	key := api.KeyOf(benchPlacement(77_777))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if f.Snapshot().Get(key) == nil {
			b.Fatal("the object is not in the snapshot")
		}
	}
}

// BenchmarkServerMemory opens a durable store with 10,000 clusters and 100,000 placements, loads it, and reports the
// memory of the process.
func BenchmarkServerMemory(b *testing.B) {
	codec := benchCodec(b)
	dir := b.TempDir()
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{DataDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	fillStore(b, s, codec)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	b.ResetTimer()
	for range b.N {
		s, err := store.Open(ctx, store.Options{DataDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		opened := b.Elapsed()
		f := New(Options{Store: s, Codec: codec})
		if err := f.load(ctx, true); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric((b.Elapsed() - opened).Seconds(), "load-s")
		runtime.GC()
		b.ReportMetric(resident(b, "RssAnon"), "anon-MiB")
		b.ReportMetric(resident(b, "VmRSS"), "rss-MiB")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(f)
		b.StartTimer()
	}
}

// resident returns a memory statistic of the process in MiB.
func resident(b *testing.B, name string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	b.Fatalf("/proc/self/status has no %s", name)
	return 0
}

// fillStore writes 10,000 clusters and 100,000 placements.
func fillStore(b *testing.B, s *store.Store, codec *store.Codec) {
	ctx := context.Background()
	revisions := map[api.Key]int64{}
	records := benchRecords(b, codec, 10_000, 100_000)
	for begin := 0; begin < len(records); begin += 100 {
		batch := records[begin:min(begin+100, len(records))]
		if batch[0].Part == store.Status {
			var writes []store.StatusWrite
			for _, r := range batch {
				writes = append(writes, store.StatusWrite{Key: r.Key, Value: r.Value, SpecRevision: revisions[r.Key]})
			}
			if _, err := s.Derive(ctx, writes); err != nil {
				b.Fatal(err)
			}
			continue
		}
		var writes []store.Write
		for _, r := range batch {
			writes = append(writes, store.Write{Key: r.Key, Value: r.Value, Expect: 0})
		}
		revision, err := s.Commit(ctx, writes...)
		if err != nil {
			b.Fatal(err)
		}
		for _, w := range writes {
			revisions[w.Key] = revision
		}
	}
}
