package reconcile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func TestMain(m *testing.M) {
	storetest.SmallLogs()
	goleak.VerifyTestMain(m)
}

// system is a real store and fleet with a reconciler.
type system struct {
	t          testing.TB
	store      *store.Store
	codec      *store.Codec
	fleet      *fleet.Fleet
	reconciler *Reconciler
	stop       func()
}

// faultyStore fails the next writes before it passes them on.
type faultyStore struct {
	*store.Store
	mu    sync.Mutex
	fail  []error
	calls [][]api.Key
}

func (s *faultyStore) Derive(ctx context.Context, writes []store.StatusWrite) (int64, error) {
	s.mu.Lock()
	keys := make([]api.Key, len(writes))
	for i, w := range writes {
		keys[i] = w.Key
	}
	s.calls = append(s.calls, keys)
	if len(s.fail) > 0 {
		err := s.fail[0]
		s.fail = s.fail[1:]
		s.mu.Unlock()
		return 0, err
	}
	s.mu.Unlock()
	return s.Store.Derive(ctx, writes)
}

func (s *faultyStore) failNext(errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = append(s.fail, errs...)
}

func (s *faultyStore) written() [][]api.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func start(t testing.TB) (*system, *faultyStore) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), NoFsync: true, MinFreeBytes: 1, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := store.OpenCodec(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	y := &system{t: t, store: s, codec: codec}
	faulty := &faultyStore{Store: s}
	y.fleet = fleet.New(fleet.Options{Store: s, Codec: codec})
	y.reconciler = New(Options{Store: faulty, Codec: codec, Fleet: y.fleet})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := y.fleet.Run(ctx); err != nil {
			t.Errorf("fleet: %v", err)
		}
	})
	done := make(chan error, 1)
	go func() { done <- y.reconciler.Run(ctx) }()
	y.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := <-done; err != nil {
			t.Errorf("reconciler: %v", err)
		}
	})
	t.Cleanup(func() {
		y.stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return y, faulty
}

// put writes the spec of an object and waits for the resulting decisions.
func (y *system) put(object api.Object) *fleet.Entry {
	y.t.Helper()
	revision := y.write(object)
	y.settle(revision)
	return y.fleet.Snapshot().Get(api.KeyOf(object))
}

func (y *system) write(object api.Object) int64 {
	y.t.Helper()
	object.SetDefaults()
	if err := object.Validate().Err(); err != nil {
		y.t.Fatal(err)
	}
	key, meta := api.KeyOf(object), object.Meta()
	meta.UID, meta.Generation = "uid-"+key.Path(), 1
	if was := y.fleet.Snapshot().Get(key); was != nil {
		meta.Generation = was.Object.Meta().Generation + 1
	}
	value, err := y.codec.EncodeSpec(object)
	if err != nil {
		y.t.Fatal(err)
	}
	revision, err := y.store.Commit(y.t.Context(), store.Write{Key: key, Part: store.Spec, Value: value, Expect: -1})
	if err != nil {
		y.t.Fatal(err)
	}
	return revision
}

// observe writes the value of a metric, as a collector does.
func (y *system) observe(name string, value float64) {
	y.t.Helper()
	key := api.Key{Kind: api.KindMetric, Name: name}
	entry := y.fleet.Snapshot().Get(key)
	m := *entry.Object.(*api.Metric)
	m.Status.Value = &value
	encoded, err := y.codec.EncodeStatus(&m)
	if err != nil {
		y.t.Fatal(err)
	}
	revision, err := y.store.Derive(y.t.Context(), []store.StatusWrite{{Key: key, Value: encoded, SpecRevision: entry.SpecRevision}})
	if err != nil {
		y.t.Fatal(err)
	}
	y.settle(revision)
}

func (y *system) settle(revision int64) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), eventually.Limit)
	defer cancel()
	if err := y.reconciler.Settle(ctx, revision); err != nil {
		y.t.Fatal(err)
	}
}

func (y *system) placement(name string) *api.Placement {
	y.t.Helper()
	entry := y.fleet.Snapshot().Get(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name})
	if entry == nil {
		y.t.Fatalf("placement %s does not exist", name)
	}
	return entry.Object.(*api.Placement)
}

func (y *system) twoClusters() {
	y.t.Helper()
	y.put(provider())
	for i, value := range []float64{0.5, 0.2} {
		name := fmt.Sprintf("m%d", i+1)
		y.put(metric(name, 0))
		y.observe(name, value)
		y.put(cluster(fmt.Sprintf("c%d", i+1), nil, api.MetricRef{Name: name}))
	}
}

func TestDecisionFollowsTheWrite(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	entry := y.put(newPlacement("web", 1))
	p := entry.Object.(*api.Placement)
	if got := p.Status.Clusters; !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("clusters %v, want c1", got)
	}
	if p.Status.ObservedGeneration != p.Metadata.Generation || p.Status.DecisionRevision != 1 || p.Status.ScheduledAt == nil {
		t.Errorf("status %+v, want the first decision, observed", p.Status)
	}
	y.observe("m2", 0.9)
	if got := y.placement("web"); !slices.Equal(got.Status.Clusters, []string{"c2"}) || got.Status.DecisionRevision != 2 {
		t.Errorf("status %+v after c2 rose, want the second decision, on c2", got.Status)
	}
}

func TestOnlyWhatAMetricConcernsIsWritten(t *testing.T) {
	y, faulty := start(t)
	y.twoClusters()
	y.put(newPlacement("web", 1))
	y.put(newPlacement("both", 2))
	before := map[string]string{"web": y.placement("web").Metadata.ResourceVersion, "both": y.placement("both").Metadata.ResourceVersion}
	calls := len(faulty.written())
	y.observe("m1", 0.6) // better for web, which is there; both has both clusters
	if n := len(faulty.written()); n != calls {
		t.Errorf("a change of a metric that moves nothing caused the writes %v", faulty.written()[calls:])
	}
	y.observe("m2", 0.95)
	if got := y.placement("both").Metadata.ResourceVersion; got != before["both"] {
		t.Errorf("placement both was rewritten: %s, was %s", got, before["both"])
	}
	if got := y.placement("web").Metadata.ResourceVersion; got == before["web"] {
		t.Error("placement web was not rewritten")
	}
}

func TestFailedWritesAreTriedAgain(t *testing.T) {
	y, faulty := start(t)
	y.twoClusters()
	faulty.failNext(store.ErrFull, fmt.Errorf("no answer: %w", store.ErrUncertain))
	entry := y.put(newPlacement("web", 1)) // Settle waits for the third attempt
	if got := entry.Object.(*api.Placement).Status.Clusters; !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("clusters %v, want c1", got)
	}
	if n := len(faulty.written()); n != 3 {
		t.Errorf("%d attempts, want 3: %v", n, faulty.written())
	}
}

func TestAnotherOwnerEndsTheRun(t *testing.T) {
	y, faulty := start(t)
	y.twoClusters()
	y.stop()
	ctx := t.Context()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	f := fleet.New(fleet.Options{Store: y.store, Codec: y.codec})
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.Run(running) })
	r := New(Options{Store: faulty, Codec: y.codec, Fleet: f})
	faulty.failNext(store.ErrFenced)
	y.write(newPlacement("web", 1))
	err := r.Run(running)
	cancel()
	wg.Wait()
	if !errors.Is(err, store.ErrFenced) {
		t.Fatalf("Run returned %v, want ErrFenced", err)
	}
}

func TestARestartMovesAndRewritesNothing(t *testing.T) {
	y, faulty := start(t)
	y.twoClusters()
	for i := range 20 {
		y.put(newPlacement(fmt.Sprintf("p%d", i), int64(i%3)))
	}
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
	y.reconciler = r
	y.settle(revision)
	cancel()
	wg.Wait()
	if n := len(faulty.written()); n != calls {
		t.Errorf("the restart wrote %v", faulty.written()[calls:])
	}
}

func TestRescheduleDropsTheStickiness(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	sticky := newPlacement("web", 1, func(s *api.PlacementSpec) {
		s.Metrics = &api.MetricsStrategy{Stickiness: ptr(100.0)}
	})
	y.put(sticky)
	y.observe("m2", 0.9)
	if got := y.placement("web").Status.Clusters; !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("clusters %v, want c1: stickiness is 100", got)
	}
	again := *y.placement("web")
	again.Metadata.RescheduleRequests++
	value, err := y.codec.EncodeSpec(&again)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := y.store.Commit(t.Context(), store.Write{Key: api.KeyOf(&again), Part: store.Spec, Value: value, Expect: -1})
	if err != nil {
		t.Fatal(err)
	}
	y.settle(revision)
	got := y.placement("web").Status
	if !slices.Equal(got.Clusters, []string{"c2"}) || got.ObservedRescheduleRequests != 1 {
		t.Errorf("status %+v after the request, want c2", got)
	}
}

func TestADeletedPlacementLeavesNothing(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	y.put(newPlacement("web", 1))
	key := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	revision, err := y.store.Commit(t.Context(),
		store.Write{Key: key, Part: store.Spec, Expect: -1}, store.Write{Key: key, Part: store.Status, Expect: -1})
	if err != nil {
		t.Fatal(err)
	}
	y.settle(revision)
	if _, err := y.reconciler.Explain(key); !errors.Is(err, ErrNotFound) {
		t.Errorf("Explain of a deleted placement: %v", err)
	}
	if n := len(y.reconciler.loop.planner.placer.occupants); n != 0 {
		t.Errorf("%d clusters still have occupants", n)
	}
	if _, status, err := y.store.Read(t.Context(), key); err != nil || status != nil {
		t.Errorf("status %v, error %v after the deletion, want neither", status, err)
	}
}

func TestObserveAndExplainAgree(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	y.put(newPlacement("web", 1))
	e, err := y.reconciler.Explain(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "c1 chosen; 2 of 2 clusters fit"; e.Summary != want {
		t.Errorf("summary %q, want %q", e.Summary, want)
	}
	if len(e.Candidates) != 2 || !e.Candidates[0].Selected || e.Candidates[0].Cluster != "c1" {
		t.Fatalf("candidates %+v, want c1 selected out of two", e.Candidates)
	}
	// c1 has 0.5 with weight 1, and stays: (0.5 + 0.1) / 1.1.
	if got, want := *e.Candidates[0].Score, 0.6/1.1; got != want {
		t.Errorf("score %v, want %v", got, want)
	}
	sum := 0.0
	for _, part := range e.Candidates[0].Scores {
		sum += part.Share
	}
	if diff := sum - *e.Candidates[0].Score; diff > 1e-12 || diff < -1e-12 {
		t.Errorf("shares add up to %v, want the score %v", sum, *e.Candidates[0].Score)
	}
	c := y.fleet.Snapshot().Get(api.Key{Kind: api.KindCluster, Name: "c1"}).Object.(*api.Cluster)
	seen := y.reconciler.Observe(c).(*api.Cluster)
	if seen.Status.State != api.StateOnline || len(seen.Status.Metrics) != 1 || *seen.Status.Metrics[0].Normalized != 0.5 {
		t.Errorf("observed status %+v, want it online, with one metric", seen.Status)
	}
	if len(c.Status.Metrics) != 0 {
		t.Error("Observe modified the fleet's object")
	}
}

// A placement may want every cluster of a large fleet; its decision then is far
// larger than what etcd takes in one request.
func TestADecisionForTenThousandClustersIsStored(t *testing.T) {
	y, _ := start(t)
	var writes []store.Write
	for i := range 10_000 {
		c := cluster(fmt.Sprintf("a-cluster-with-a-name-of-usual-length-%05d", i), nil)
		c.SetDefaults()
		c.Metadata.UID, c.Metadata.Generation = fmt.Sprint(i), 1
		value, err := y.codec.EncodeSpec(c)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, store.Write{Key: api.KeyOf(c), Part: store.Spec, Value: value})
	}
	for batch := range slices.Chunk(writes, 50) {
		if _, err := y.store.Commit(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	entry := y.put(newPlacement("everywhere", -1))
	if n := len(entry.Object.(*api.Placement).Status.Decisions); n != 10_000 {
		t.Fatalf("%d decisions, want 10,000", n)
	}
	_, status, err := y.store.Read(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "everywhere"})
	if err != nil || len(status.Value) > 512<<10 {
		t.Errorf("stored status of %d bytes, want at most 512 KiB (%v)", len(status.Value), err)
	}
}

// refusingStore rejects the status of one placement.
type refusingStore struct {
	Store
	name string
}

func (s refusingStore) Derive(ctx context.Context, writes []store.StatusWrite) (int64, error) {
	for i, w := range writes {
		if w.Key.Name == s.name {
			revision, err := s.Store.Derive(ctx, slices.Delete(slices.Clone(writes), i, i+1))
			return revision, errors.Join(err, &store.DeriveError{Failed: map[api.Key]error{w.Key: fmt.Errorf("%w: too large", store.ErrInvalid)}})
		}
	}
	return s.Store.Derive(ctx, writes)
}

func TestStatusThatCannotBeStoredDelaysNoOther(t *testing.T) {
	y, faulty := start(t)
	y.twoClusters()
	y.stop()
	y.reconciler = New(Options{Store: refusingStore{faulty, "poison"}, Codec: y.codec, Fleet: y.fleet})
	var last int64
	for _, name := range []string{"a", "b", "poison", "x", "y"} {
		last = y.write(newPlacement(name, 1))
	}
	f := fleet.New(fleet.Options{Store: y.store, Codec: y.codec})
	y.fleet, y.reconciler.options.Fleet, y.reconciler.loop.options.Fleet = f, f, f
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.Run(ctx) })
	wg.Go(func() { _ = y.reconciler.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	y.settle(last)
	for _, name := range []string{"a", "b", "x", "y"} {
		if got := y.placement(name).Status.Clusters; !slices.Equal(got, []string{"c1"}) {
			t.Errorf("%s is on %v, want c1", name, got)
		}
	}
}
