package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// restart replaces the reconciler of a system with one that has other options.
func (y *system) restart(options Options) {
	y.t.Helper()
	y.stop()
	f := fleet.New(fleet.Options{Store: y.store, Codec: y.codec})
	options.Codec, options.Fleet = y.codec, f
	r := New(options)
	y.fleet, y.reconciler = f, r
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	running.Go(func() { _ = r.Run(ctx) })
	y.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	y.t.Cleanup(y.stop)
}

// poisonedStore rejects the status of one cluster.
type poisonedStore struct {
	Store

	poison string
	mu     sync.Mutex
	err    error // nil after it is repaired
	asked  map[string]int
}

func (s *poisonedStore) Derive(ctx context.Context, writes []store.StatusWrite) (int64, error) {
	s.mu.Lock()
	err := s.err
	for _, w := range writes {
		s.asked[w.Key.Name]++
	}
	s.mu.Unlock()
	at := slices.IndexFunc(writes, func(w store.StatusWrite) bool { return w.Key.Kind == api.KindCluster && w.Key.Name == s.poison })
	if at < 0 || err == nil {
		return s.Store.Derive(ctx, writes)
	}
	failure := error(&store.DeriveError{Failed: map[api.Key]error{writes[at].Key: err}})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		failure = conflict
	}
	writes = slices.Delete(slices.Clone(writes), at, at+1)
	if len(writes) == 0 {
		return 0, failure
	}
	revision, err := s.Store.Derive(ctx, writes)
	return revision, errors.Join(failure, err)
}

func (s *poisonedStore) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

func (s *poisonedStore) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
}

func (y *system) cloudOf(name string) string {
	entry := y.fleet.Snapshot().Get(api.Key{Kind: api.KindCluster, Name: name})
	if entry == nil {
		return ""
	}
	return entry.Object.(*api.Cluster).Status.Cloud
}

// guestCluster returns a cluster that is created on a cloud.
func guestCluster(name string) *api.Cluster {
	c := cluster(name, nil)
	c.Spec.CloudConstraints = &api.CloudConstraints{}
	return c
}

// countOf returns the number of series of a metric.
func countOf(c prometheus.Collector) int {
	series := make(chan prometheus.Metric, 100)
	c.Collect(series)
	return len(series)
}

func TestAClusterThatCannotBeWrittenHoldsUpNoOther(t *testing.T) {
	changed := &store.ConflictError{Conflicts: []store.Conflict{{Key: key(api.KindCluster, "", "poison"), Part: store.Spec, Expected: 1, Actual: 2}}}
	for name, failure := range map[string]error{
		"refused": errors.New("the status cannot be written"), "uncertain": fmt.Errorf("write: %w", store.ErrUncertain), "conflict": changed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y, faulty := start(t)
			b := &poisonedStore{Store: faulty, poison: "poison", err: failure, asked: map[string]int{}}
			y.restart(Options{Store: b})
			y.put(&api.Cloud{Metadata: api.Metadata{Name: "cloud"}})
			y.twoClusters()
			names := []string{"a", "b", "poison", "x", "y"}
			var last int64
			for _, name := range names {
				last = y.write(guestCluster(name))
			}
			last = max(last, y.write(newPlacement("web", 1)))
			y.settle(last) // returns although the poisoned object cannot be written
			for _, name := range names {
				if got := y.cloudOf(name); (got == "cloud") != (name != "poison") {
					t.Errorf("%s: unexpected cloud %q", name, got)
				}
			}
			// Later objects are decided and answered, too.
			for i := range 20 {
				y.put(newPlacement(fmt.Sprintf("later%d", i), 1))
				if got := y.placement(fmt.Sprintf("later%d", i)).Status.Clusters; !slices.Equal(got, []string{"c1"}) {
					t.Fatalf("placement later%d is on %v, want c1", i, got)
				}
			}
			eventually.True(t, "two attempts, unless it changed", func() bool { return b.count("poison") >= 2 || errors.Is(failure, changed) })
			for _, name := range names {
				if n := b.count(name); n > 8 || name != "poison" && n > 2 {
					t.Errorf("%s was written %d times", name, n)
				}
			}
			for _, keys := range faulty.written() {
				if len(keys) == 0 {
					t.Error("Derive without writes")
				}
			}
			if errors.Is(failure, changed) {
				return // a change was reported
			}
			b.mend()
			eventually.True(t, "the poison is bound once its status can be written", func() bool { return y.cloudOf("poison") == "cloud" })
			eventually.True(t, "nothing is blocked", func() bool { return countOf(y.reconciler.metrics.blocked) == 0 })
		})
	}
}

// decidable returns a decision of a placement.
func decidable(name string) *placementDecision {
	return &placementDecision{query: &placement.Query{Key: api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}}, specRevision: 1}
}

// The rules of the back-off, with a simulated clock.
func TestUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnwritten()
		poison, sound := decidable("poison"), decidable("sound")
		u.add(write{decision: poison, specRevision: 1, moved: true})
		u.add(write{decision: sound, specRevision: 1})
		began := time.Now()
		if due := u.due(began); len(due) != 2 || !u.waits() {
			t.Fatalf("due %v, want both", due)
		}
		u.done(sound)
		attempts, held := 0, time.Duration(-1)
		for time.Since(began) < time.Hour {
			for _, w := range u.due(time.Now()) {
				if !w.moved {
					t.Fatal("the write no longer says that the decision moved")
				}
				attempts++
				u.failed(w.decision, errors.New("no"), time.Now())
				u.add(write{decision: poison, specRevision: 1}) // decided again in the meantime
			}
			if held < 0 && !u.waits() {
				held = time.Since(began)
			}
			next := u.next(time.Now())
			if !next.After(time.Now()) {
				t.Fatal("the next attempt is not in the future")
			}
			faketime.Sleep(time.Until(next))
		}
		if held < 0 || held > 2*time.Second {
			t.Errorf("waiters were held up for %s, want at most 2s", held)
		}
		if attempts < 55 || attempts > 75 {
			t.Errorf("%d attempts in an hour, want about one a minute", attempts)
		}
		if blocked := u.blocked(); len(blocked) != 1 {
			t.Errorf("blocked %v, want one", blocked)
		}
		// A new spec is written at once, and so is an object that has never failed.
		poison.specRevision = 2
		u.add(write{decision: poison, specRevision: 2})
		if due := u.due(time.Now()); len(due) != 1 || !u.waits() {
			t.Errorf("due %v after a change of the spec, want one", due)
		}
		// A deleted object is forgotten.
		u.failed(poison, errors.New("no"), time.Now())
		poison.gone = true
		if due := u.due(time.Now()); len(due) != 0 || u.waits() || u.len() != 0 || !u.next(time.Now()).IsZero() {
			t.Errorf("due %v, %d unwritten after the deletion, want none", due, u.len())
		}
	})
}

// While the store as a whole does not answer, nothing is settled for as long as a
// request waits, and what waits is written soon after it is back.
func TestUnwrittenWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnwritten()
		placed := decidable("web")
		u.add(write{decision: placed, specRevision: 1})
		began := time.Now()
		for time.Since(began) < 8*time.Second {
			if !u.waits() {
				t.Fatalf("settled after %s, want to wait while the store is down", time.Since(began))
			}
			for _, w := range u.due(time.Now()) {
				u.failed(w.decision, fmt.Errorf("write: %w", store.ErrUnavailable), time.Now())
			}
			if pause := time.Until(u.next(time.Now())); pause > 2*time.Second {
				t.Fatalf("next attempt in %s, want at most 2s", pause)
			}
			faketime.Sleep(time.Until(u.next(time.Now())))
		}
		u.done(placed)
		u.add(write{decision: placed, specRevision: 1})
		u.failed(placed, errors.New("no"), time.Now())
		if pause := time.Until(u.next(time.Now())); pause > writeAgain.First {
			t.Errorf("next attempt in %s, want the first delay of a new back-off", pause)
		}
	})
}

// Very many decisions are written in rounds. A decision that is made again does not overtake those that still wait.
func TestUnwrittenInRounds(t *testing.T) {
	u, now := newUnwritten(), time.Unix(1, 0)
	const all = 2*maxWrites + 10
	for n := range all {
		u.add(write{decision: decidable(fmt.Sprintf("p%06d", n)), specRevision: 1})
	}
	var written []string
	for u.len() > 1 {
		if at := u.next(now); at != now {
			t.Fatalf("with %d written, the next are due at %v, want now", len(written), at)
		}
		due := u.due(now)
		if len(due) == 0 || len(due) > maxWrites {
			t.Fatalf("%d writes due at a time", len(due))
		}
		for _, w := range due {
			written = append(written, w.key().Name)
			u.done(w.decision)
		}
		u.add(write{decision: due[0].decision, specRevision: 1})
	}
	if round := slices.Compact(written[:all]); len(round) != all || !slices.IsSorted(round) {
		t.Errorf("the first round does not contain every decision once, ordered by key")
	}
}

// lookingStore calls a function with the planner before each write.
type lookingStore struct {
	Store
	look func([]store.StatusWrite)
}

func (s *lookingStore) Derive(ctx context.Context, writes []store.StatusWrite) (int64, error) {
	s.look(writes) // in the planner's goroutine
	return s.Store.Derive(ctx, writes)
}

// Writes are taken in before more are sent. Until then, each decision is in memory three times: as decided, as stored,
// and as it was before.
func TestWritesAreAppliedBeforeFurtherWrites(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	y.stop()
	writes := make([]store.Write, 2*maxWrites+10)
	for i := range writes {
		object := newPlacement(fmt.Sprintf("p%05d", i), 1)
		object.SetDefaults()
		object.Metadata.UID, object.Metadata.Generation = "uid", 1
		value, err := y.codec.EncodeSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		writes[i] = store.Write{Key: api.KeyOf(object), Part: store.Spec, Value: value}
	}
	var revision int64
	for part := range slices.Chunk(writes, 100) {
		var err error
		if revision, err = y.store.Commit(t.Context(), part...); err != nil {
			t.Fatal(err)
		}
	}
	looking := &lookingStore{Store: y.store}
	var before []store.StatusWrite
	rounds := 0
	looking.look = func(writes []store.StatusWrite) {
		for _, w := range before {
			if y.reconciler.loop.planner.placer.placements[w.Key].object.Status.ObservedGeneration == 0 {
				t.Errorf("before round %d: the planner does not have the decision on %s yet", rounds, w.Key)
				break
			}
		}
		before = append(before, writes...)
		rounds++
	}
	y.restart(Options{Store: looking})
	y.settle(revision)
	if rounds < 3 || len(before) < len(writes) { // more if the store did not respond in time
		t.Errorf("%d decisions written in %d rounds", len(before), rounds)
	}
}
