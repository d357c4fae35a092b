package signal

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// BenchmarkHeartbeat measures a durable heartbeat while many agents send theirs concurrently.
func BenchmarkHeartbeat(b *testing.B) {
	s, codec := openStore(b)
	bench := start(b, s, codec)
	const agents = 256
	for i := range agents {
		bench.put(&api.Cluster{Metadata: api.Metadata{Name: fmt.Sprint("edge-", i)}})
	}
	var next atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			name := fmt.Sprint("edge-", next.Add(1)%agents)
			if _, err := bench.Heartbeat(b.Context(), name, api.Heartbeat{}); err != nil {
				b.Error(err)
			}
		}
	})
}
