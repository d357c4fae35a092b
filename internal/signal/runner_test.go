package signal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/tempstore"
)

func TestMain(m *testing.M) {
	storetest.SmallLogs()
	goleak.VerifyTestMain(m)
}

// bench is a runner on a real store and fleet.
type bench struct {
	t     testing.TB
	store *store.Store
	codec *store.Codec
	fleet *fleet.Fleet
	*Runner
	stop func()
}

func openStore(t testing.TB) (*store.Store, *store.Codec) {
	t.Helper()
	s := tempstore.Open(t)
	codec, err := store.OpenCodec(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return s, codec
}

// start runs everything on a store until stop is called or the test ends.
func start(t testing.TB, s *store.Store, codec *store.Codec) *bench {
	t.Helper()
	b := &bench{t: t, store: s, codec: codec}
	b.fleet = fleet.New(fleet.Options{Store: s, Codec: codec})
	batcher := store.NewBatcher(s)
	b.Runner = New(Options{Network: addresspolicy.OnLoopback(), Fleet: b.fleet, Store: s, Batcher: batcher, Codec: codec})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{b.fleet.Run, batcher.Run, b.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	b.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	t.Cleanup(b.stop)
	<-b.fleet.Ready()
	return b
}

// put writes the spec of an object and waits for the signals.
func (b *bench) put(object api.Object) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Limit)
	defer cancel()
	b.settle(ctx, b.write(ctx, object))
}

// write writes the spec of an object.
func (b *bench) write(ctx context.Context, object api.Object) (revision int64) {
	b.t.Helper()
	object.SetDefaults()
	if err := object.Validate().Err(); err != nil {
		b.t.Fatal(err)
	}
	key := api.KeyOf(object)
	meta := object.Meta()
	meta.UID, meta.Generation = "uid-"+meta.Name, 1
	if old := b.fleet.Snapshot().Get(key); old != nil {
		meta.Generation = old.Object.Meta().Generation + 1
	}
	value, err := b.codec.EncodeSpec(object)
	if err != nil {
		b.t.Fatal(err)
	}
	revision, err = b.store.Commit(ctx, store.Write{Key: key, Part: store.Spec, Value: value, Expect: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	return revision
}

func (b *bench) settle(ctx context.Context, revision int64) {
	b.t.Helper()
	settled, err := b.Settle(ctx, revision)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.fleet.WaitRevision(ctx, settled); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) remove(key api.Key) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Limit)
	defer cancel()
	revision, err := b.store.Commit(ctx, store.Write{Key: key, Part: store.Spec, Expect: -1}, store.Write{Key: key, Part: store.Status, Expect: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	b.settle(ctx, revision)
}

// expect checks the stored value of a metric.
func (b *bench) expect(name string, value any, reason string) {
	b.t.Helper()
	if message := b.differs(name, value, reason); message != "" {
		b.t.Error(message)
	}
}

func (b *bench) differs(name string, value any, reason string) string {
	entry := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: name})
	if entry == nil {
		return name + " does not exist"
	}
	s := entry.Object.(*api.Metric).Status
	var got any
	if s.Value != nil {
		got = *s.Value
	}
	c := api.FindCondition(s.Conditions, api.ConditionAvailable)
	if c == nil || c.Reason != reason || got != value {
		return fmt.Sprintf("%s: value %v, condition %+v; want %v, %s", name, got, c, value, reason)
	}
	return ""
}

func staticProvider(values map[string]float64) *api.MetricsProvider {
	return &api.MetricsProvider{Metadata: api.Metadata{Name: "table"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values},
	}}
}

func metricOf(name, provider, query string) *api.Metric {
	low, high := 0.0, 100.0
	return &api.Metric{Metadata: api.Metadata{Name: name}, Spec: api.MetricSpec{
		Min: &low, Max: &high, MetricsProvider: api.MetricProviderRef{Name: provider, Metric: query},
	}}
}

func TestMetricsAreInTheFleetWhenSettled(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	b.put(metricOf("load", "table", "load"))
	b.expect("load", nil, api.ReasonUnknownMetricsProvider)
	b.put(staticProvider(map[string]float64{"load": 25}))
	b.expect("load", 25.0, api.ReasonAvailable)
	for i := range 20 {
		b.put(staticProvider(map[string]float64{"load": float64(i)}))
		b.expect("load", float64(i), api.ReasonAvailable)
	}
	b.remove(api.Key{Kind: api.KindMetricsProvider, Name: "table"})
	b.expect("load", 19.0, api.ReasonUnknownMetricsProvider)
}

func TestManyMetricsOfOneProvider(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	values := map[string]float64{}
	for i := range 250 {
		values[fmt.Sprint("m", i)] = float64(i % 100)
	}
	b.put(staticProvider(values))
	for i := range 250 {
		b.put(metricOf(fmt.Sprint("m", i), "table", fmt.Sprint("m", i)))
	}
	for name := range values {
		values[name] = 50
	}
	b.put(staticProvider(values))
	for name := range values {
		b.expect(name, 50.0, api.ReasonAvailable)
	}
}

func TestRestartWritesNothing(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	b.put(staticProvider(map[string]float64{"load": 25}))
	b.put(metricOf("load", "table", "load"))
	b.put(&api.Cluster{Metadata: api.Metadata{Name: "edge"}, Spec: api.ClusterSpec{Allocated: api.Quantities{"cpu": "1"}}})
	if _, err := b.Heartbeat(t.Context(), "edge", api.Heartbeat{}); err != nil {
		t.Fatal(err)
	}
	b.stop()
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b = start(t, s, codec)
	b.expect("load", 25.0, api.ReasonAvailable)
	// After a change, everything of the provider is read again: one revision for the change and one for the values, and
	// none for a restart.
	b.put(staticProvider(map[string]float64{"load": 30}))
	b.expect("load", 30.0, api.ReasonAvailable)
	if after, err := s.Revision(t.Context()); err != nil || after != before+2 {
		t.Errorf("the revision went from %d to %d, %v; want two writes", before, after, err)
	}
}

func TestHeartbeatsOfManyAgents(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	const agents = 50
	for i := range agents {
		b.put(&api.Cluster{Metadata: api.Metadata{Name: fmt.Sprint("edge-", i)}})
	}
	var group sync.WaitGroup
	for i := range agents {
		group.Go(func() {
			name := fmt.Sprint("edge-", i)
			for range 5 {
				revision, err := b.Heartbeat(t.Context(), name, api.Heartbeat{Allocated: api.Quantities{"cpu": "2"}})
				if err != nil {
					t.Error(err)
					return
				}
				_, stored, err := s.Read(t.Context(), api.Key{Kind: api.KindCluster, Name: name})
				if err != nil || stored == nil || stored.ModRevision < revision {
					t.Errorf("%s: acknowledged with revision %d, but the store has %+v, %v", name, revision, stored, err)
				}
			}
		})
	}
	group.Wait()
	if _, err := b.Heartbeat(t.Context(), "nobody", api.Heartbeat{}); !errors.Is(err, errNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// TestHeartbeatRightAfterCreation sends a heartbeat for a cluster that is in the store, but that the monitor does not
// know yet.
func TestHeartbeatRightAfterCreation(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	for i := range 20 {
		c := &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprint("edge-", i), UID: "uid", Generation: 1}}
		c.SetDefaults()
		value, err := codec.EncodeSpec(c)
		if err != nil {
			t.Fatal(err)
		}
		revision, err := s.Commit(t.Context(), store.Write{Key: api.KeyOf(c), Part: store.Spec, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.fleet.WaitRevision(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Heartbeat(t.Context(), c.Metadata.Name, api.Heartbeat{}); err != nil {
			t.Error(err)
		}
	}
}

func TestSettleEndsWithItsContext(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Settle(ctx, 1<<40); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestReadConstant(t *testing.T) {
	now := time.Now()
	got, ok := ReadConstant(staticProvider(map[string]float64{"load": 25}), metricOf("m", "table", "load"), now)
	if !ok || got.Value == nil || *got.Value != 25 || *got.Normalized != 0.25 || !got.ObservedAt.Equal(now) {
		t.Errorf("got %+v, %v", got, ok)
	}
	got, ok = ReadConstant(staticProvider(nil), metricOf("m", "table", "load"), now)
	if c := api.FindCondition(got.Conditions, api.ConditionAvailable); !ok || c.Reason != api.ReasonInvalidMetric {
		t.Errorf("got %+v, %v", got, ok)
	}
	if _, ok = ReadConstant(&api.MetricsProvider{Spec: api.MetricsProviderSpec{Type: api.ProviderPrometheus}}, metricOf("m", "p", "up"), now); ok {
		t.Error("ReadConstant() of Prometheus succeeded")
	}
}

func TestTranslate(t *testing.T) {
	key := api.Key{Kind: api.KindMetric, Name: "a"}
	conflict := &store.ConflictError{Keys: []api.Key{key}}
	var stale *status.StaleError
	if err := translate(errors.Join(conflict, conflict)); !errors.As(err, &stale) || len(stale.Keys) != 2 {
		t.Errorf("translate(conflicts) = %v", err)
	}
	stale = nil
	if err := translate(errors.Join(conflict, store.ErrUnavailable)); errors.As(err, &stale) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("translate(conflict and another error) = %v", err)
	}
	uncertain := fmt.Errorf("%w: %w", store.ErrUncertain, context.Canceled)
	if err := translate(uncertain); err.Error() != uncertain.Error() {
		t.Errorf("translate(other error) = %v", err)
	}
	if err := translate(nil); err != nil {
		t.Errorf("translate(nil) = %v", err)
	}
}

func TestCollectorsHaveNamesOfTheirOwn(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	registry := prom.NewPedanticRegistry()
	for _, c := range b.Collectors() {
		if err := registry.Register(c); err != nil {
			t.Error(err)
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}
