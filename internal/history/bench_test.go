package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// moves returns n changes of placements on one of 10,000 clusters because of a metric, as the store
// shows them.
func moves(b *testing.B, codec *store.Codec, n int) []store.Record {
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]store.Record, n)
	for i := range records {
		status := func(revision int64) []byte {
			at := start.Add(time.Duration(i) * 10 * time.Millisecond)
			cluster := fmt.Sprint("cluster-", random.IntN(10_000))
			value, err := codec.EncodeStatus(&api.Placement{Status: api.PlacementStatus{
				Clusters: []string{cluster}, Decisions: []api.Decision{{Cluster: cluster, Score: random.Float64(), Rank: 1, Since: &at}},
				DecisionRevision: revision, ScheduledAt: &at, ObservedGeneration: 1,
				Cause:      &api.Cause{Type: api.CauseMetric, Object: &api.Key{Kind: api.KindMetric, Name: fmt.Sprint("load-", random.IntN(10_000))}, Field: "status.value", Old: fmt.Sprint(random.Float64()), New: fmt.Sprint(random.Float64())},
				Conditions: []api.Condition{{Type: api.ConditionSatisfied, Status: api.ConditionTrue, Reason: "Satisfied", Message: "1 of 1 clusters", LastTransitionAt: &at}},
			}})
			if err != nil {
				b.Fatal(err)
			}
			return value
		}
		records[i] = store.Record{
			Key:  api.Key{Kind: api.KindPlacement, Namespace: fmt.Sprint("team-", random.IntN(100)), Name: fmt.Sprint("app-", random.IntN(100_000))},
			Part: store.Status, Before: status(1), Value: status(2), CreateRevision: 1, ModRevision: int64(i + 2),
		}
	}
	return records
}

// BenchmarkWrite writes moves, 100 at a time, and reports what they take on the disk.
func BenchmarkWrite(b *testing.B) {
	codec := testCodec(b)
	l := opened(b, b.TempDir(), &clock{start})
	l.maxFile = maxFile
	records := moves(b, codec, 10_000)
	n := int64(0)
	cputime.Measure(b, func() {
		lines := make([]line, 0, 100)
		for range cap(lines) {
			record := records[n%int64(len(records))]
			n++
			record.ModRevision = n
			if line, ok := lineOf(&record, start); ok {
				lines = append(lines, line)
			}
		}
		appended(b, l, n, lines...)
	})
	var bytes int64
	for _, f := range l.files {
		if f.sealed {
			bytes += f.size
		}
	}
	if sealed := len(l.files) - 1; sealed > 0 {
		b.ReportMetric(float64(bytes)/float64(n)*float64(len(l.files))/float64(sealed), "disk-bytes/move")
	}
}

// BenchmarkRead reads pages of a history of a million moves.
func BenchmarkRead(b *testing.B) {
	codec := testCodec(b)
	dir := b.TempDir()
	l := opened(b, dir, &clock{start})
	l.maxFile = maxFile
	records := moves(b, codec, 10_000)
	for n := int64(0); n < 1_000_000; {
		lines := make([]line, 0, 1000)
		for range cap(lines) {
			record := records[n%int64(len(records))]
			n++
			record.ModRevision = n
			if line, ok := lineOf(&record, start); ok {
				lines = append(lines, line)
			}
		}
		appended(b, l, n, lines...)
	}
	var bytes int64
	for _, name := range files(b, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	for name, query := range map[string]Query{
		"newest": {}, "object": {Namespace: records[5].Key.Namespace, Name: records[5].Key.Name}, "cluster": {Cluster: "cluster-42"}, "nothing": {Name: "nobody"},
	} {
		b.Run(name, func(b *testing.B) {
			query.Limit = 100
			cputime.Measure(b, func() { l.Read(query) })
			b.ReportMetric(float64(bytes)/1e6, "disk-bytes/move")
		})
	}
}
