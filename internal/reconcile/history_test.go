package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// recorded is a server with a history and a clock of its own, which can be restarted.
type recorded struct {
	t     testing.TB
	dir   string
	clock atomic.Int64 // nanoseconds since epoch

	store      *store.Store
	codec      *store.Codec
	fleet      *fleet.Fleet
	log        *history.Log
	reconciler *Reconciler
	stop       func()

	watched  *fleet.Subscription
	seen     []sighting // by a watcher of the fleet
	captured map[int64]map[api.Key]string
}

// sighting is a change of a decision that a watcher of the fleet saw.
type sighting struct {
	key      api.Key
	after    string
	revision int64 // 0 if the object was deleted
}

// deletedSince is instead of the explanation of a decision whose object was deleted before it could be asked for.
const deletedSince = "deleted since"

func (r *recorded) now() time.Time { return epoch.Add(time.Duration(r.clock.Load())) }

func (r *recorded) pass(d time.Duration) { r.clock.Add(int64(d)) }

func newRecorded(t testing.TB) *recorded {
	r := &recorded{t: t, dir: t.TempDir(), captured: map[int64]map[api.Key]string{}}
	codec, err := store.OpenCodec(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	r.codec = codec
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *recorded) start() {
	s, err := store.Open(context.Background(), store.Options{DataDir: r.dir, NoFsync: true, MinFreeBytes: 1, HistoryBytes: 64 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = s
	r.log = history.New(history.Options{Store: s, Retention: 90 * 24 * time.Hour, Size: 64 << 20, Now: r.now})
	r.fleet = fleet.New(fleet.Options{Store: s, Codec: r.codec})
	r.reconciler = New(Options{Store: s, Codec: r.codec, Fleet: r.fleet, History: r.log, Now: r.now})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{r.fleet.Run, r.reconciler.Run, r.log.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				r.t.Errorf("run: %v", err)
			}
		})
	}
	<-r.reconciler.Ready()
	r.watched = r.fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	})
}

func (r *recorded) restart() {
	r.stop()
	r.start()
}

// commit writes an object, waits for what follows, and looks at what moved.
func (r *recorded) commit(writes ...store.Write) {
	r.t.Helper()
	revision, err := r.store.Commit(r.t.Context(), writes...)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.reconciler.Settle(r.t.Context(), revision); err != nil {
		r.t.Fatal(err)
	}
	r.look()
}

// look takes in what a watcher of the fleet sees up to now.
func (r *recorded) look() {
	r.t.Helper()
	for until := r.fleet.Snapshot().Revision(); r.watched.Snapshot().Revision() < until; {
		batch, err := r.watched.Next(r.t.Context())
		if err != nil || batch.Reset {
			r.t.Fatalf("watch: %v (reset: %v)", err, batch.Reset)
		}
		var seen []sighting
		for _, change := range batch.Changes {
			if !isDecided(change.Key.Kind) {
				continue
			}
			was, is, revision := "", "", int64(0)
			if change.Old != nil {
				was = decisionText(change.Old.Object)
			}
			if change.New != nil {
				is, revision = decisionText(change.New.Object), change.New.StatusRevision
			}
			if was != is {
				seen = append(seen, sighting{change.Key, is, revision})
			}
		}
		slices.SortStableFunc(seen, func(a, b sighting) int { return cmp.Or(cmp.Compare(a.revision, b.revision), a.key.Compare(b.key)) })
		r.seen = append(r.seen, seen...)
		for _, s := range seen {
			if s.revision == 0 {
				continue
			}
			if r.captured[s.revision] == nil {
				r.captured[s.revision] = map[api.Key]string{}
			}
			if slices.ContainsFunc(seen, func(other sighting) bool { return other.key == s.key && other.revision == 0 }) {
				r.captured[s.revision][s.key] = deletedSince
				continue
			}
			explanation, err := r.reconciler.Explain(s.key)
			if err != nil {
				r.t.Fatal(err)
			}
			r.captured[s.revision][s.key] = explanationText(r.t, explanation)
		}
	}
}

func decisionText(object api.Object) string {
	switch o := object.(type) {
	case *api.Placement:
		if o.Status.DecisionRevision > 0 {
			return "[" + strings.Join(o.Status.Clusters, " ") + "]"
		}
	case *api.Workload:
		if o.Status.DecisionRevision > 0 {
			text := ""
			for _, c := range o.Status.Clusters {
				text += fmt.Sprintf("%s=%d ", c.Name, c.Replicas)
			}
			return "{" + text + "}"
		}
	}
	return ""
}

// entryText is decisionText for an entry of the history.
func entryText(e *api.HistoryEntry) string {
	switch {
	case e.After == nil:
		return ""
	case e.Object.Kind == api.KindPlacement:
		return "[" + strings.Join(e.After.Clusters, " ") + "]"
	}
	text := ""
	for _, name := range e.After.Clusters {
		text += fmt.Sprintf("%s=%d ", name, e.After.Replicas[name])
	}
	return "{" + text + "}"
}

func explanationText(t testing.TB, x *api.Explanation) string {
	t.Helper()
	copied := *x
	copied.Revision = 0
	copied.PolicyReason = "" // a server knows how a claim came about until it starts again; then it says that it is held
	text, err := json.MarshalIndent(copied, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (r *recorded) write(object api.Object) {
	r.t.Helper()
	object.SetDefaults()
	if err := object.Validate().Err(); err != nil {
		r.t.Fatal(err)
	}
	key, meta, now := api.KeyOf(object), object.Meta(), r.now()
	meta.UID, meta.Generation, meta.CreatedAt, meta.ModifiedAt = fmt.Sprint("uid-", r.fleet.Snapshot().Revision()), 1, &now, &now
	meta.WrittenBy = &api.HistoryActor{Token: "tester", RequestID: fmt.Sprint("r", r.fleet.Snapshot().Revision())}
	if was := r.fleet.Snapshot().Get(key); was != nil {
		meta.UID, meta.CreatedAt, meta.Generation = was.Object.Meta().UID, was.Object.Meta().CreatedAt, was.Object.Meta().Generation+1
	}
	value, err := r.codec.EncodeSpec(object)
	if err != nil {
		r.t.Fatal(err)
	}
	r.commit(store.Write{Key: key, Part: store.Spec, Value: value, Expect: store.Any})
}

// observe writes the status of an object, as those do that observe it.
func (r *recorded) observe(key api.Key, change func(object api.Object)) {
	r.t.Helper()
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return
	}
	object := entry.Object.Copy()
	change(object)
	value, err := r.codec.EncodeStatus(object)
	if err != nil {
		r.t.Fatal(err)
	}
	r.commit(store.Write{Key: key, Part: store.Status, Value: value, Expect: store.Any})
}

// remove deletes an object with the record of its decision, as the API does.
func (r *recorded) remove(key api.Key) {
	r.t.Helper()
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return
	}
	record, _, err := history.Encode(entry.Object, nil, history.Move{Time: r.now(), Cause: &api.Cause{Type: api.CauseSpec, Object: &key}}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.commit(store.Write{Key: key, Part: store.Spec, Expect: entry.SpecRevision, History: record})
}

// entries reads the whole history, oldest first.
func (r *recorded) entries() []api.HistoryEntry {
	r.t.Helper()
	var entries []api.HistoryEntry
	query := history.Query{}
	for {
		page, err := r.log.Read(r.t.Context(), query)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, item := range page.Items {
			if item.Gap != nil {
				r.t.Errorf("there is a gap before revision %d", item.Cursor.Revision)
				continue
			}
			entry, _, err := history.Decode(item)
			if err != nil {
				r.t.Fatal(err)
			}
			entries = append(entries, entry)
		}
		if page.Next == (history.Cursor{}) {
			return entries
		}
		query.After = page.Next
	}
}

// at explains a decision as it was at a revision.
func (r *recorded) at(key api.Key, revision int64) *api.Explanation {
	r.t.Helper()
	explanation, err := r.reconciler.ExplainPast(r.t.Context(), key, func(ctx context.Context) ([]api.Object, time.Time, error) {
		past, err := r.log.Past(ctx, revision, r.codec)
		if err != nil {
			return nil, time.Time{}, err
		}
		return past.Objects, past.Time, nil
	})
	if err != nil {
		r.t.Fatalf("explain %s at %d: %v", key, revision, err)
	}
	return explanation
}

// event makes a random change of the fleet.
func (r *recorded) event(random *rand.Rand) {
	pick := func(names ...string) string { return names[random.IntN(len(names))] }
	clusterName := func() string { return fmt.Sprint("c", random.IntN(6)) }
	r.pass(time.Duration(random.IntN(240)) * time.Second)
	switch random.IntN(16) {
	case 0, 1, 2, 3:
		r.observe(api.Key{Kind: api.KindMetric, Name: pick("m0", "m1", "m2", "m3", "m4", "m5")}, func(o api.Object) {
			as[*api.Metric](o).Status.Value = ptr(float64(random.IntN(100)) / 100)
		})
	case 4, 5, 6:
		r.observe(api.Key{Kind: api.KindCluster, Name: clusterName()}, func(o api.Object) {
			status := &as[*api.Cluster](o).Status
			status.State, status.Taints = api.StateOnline, nil
			if random.IntN(2) == 0 {
				at := r.now()
				status.State = api.StateOffline
				status.Taints = []api.ClusterTaint{{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &at}}
			}
		})
	case 7, 8:
		name := clusterName()
		c := cluster(name, map[string]string{"tier": pick("gold", "tin")}, api.MetricRef{Name: "m" + name[1:]})
		c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(4 + random.IntN(8)))}
		if random.IntN(3) == 0 {
			c.Spec.Taints = []api.Taint{{Key: "maintenance", Effect: api.TaintEffect(pick("NoExecute", "NoSchedule", "PreferNoSchedule"))}}
		}
		r.write(c)
	case 9:
		r.write(&api.PlacementScore{Metadata: api.Metadata{Name: "cost", Cluster: clusterName()}, Spec: api.PlacementScoreSpec{
			Scores: map[string]int64{"cheap": int64(random.IntN(100))}, ValidUntil: ptr(r.now().Add(10 * time.Minute)),
		}})
	case 10, 11, 12:
		r.write(newPlacement(fmt.Sprint("p", random.IntN(6)), int64(random.IntN(4))-1, func(s *api.PlacementSpec) {
			s.RescheduleAfter = api.Duration(pick("0s", "60s", "10m"))
			switch random.IntN(5) {
			case 0:
				s.LabelConstraints = []string{"tier is gold"}
			case 1:
				s.MetricConstraints = []string{"m1 > 0.3"}
			case 2:
				s.ResourceRequests = api.Quantities{"cpu": "2"}
			case 3:
				s.Tolerations = []api.Toleration{{Operator: api.TolerationExists, TolerationSeconds: ptr(int64(300))}}
			case 4:
				s.Strategy = "prioritizers"
				s.PrioritizerPolicy = &api.PrioritizerPolicy{Configurations: []api.PrioritizerConfig{{Type: api.PrioritizerAddon, ResourceName: "cost", ScoreName: "cheap", Weight: ptr(int64(2))}}}
			}
		}))
	case 13:
		r.write(workload(fmt.Sprint("w", random.IntN(4)), int64(random.IntN(9)), func(w *api.Workload) {
			w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"}
			w.Spec.Priority = int64(random.IntN(3))
		}))
	case 14:
		r.write(policy("policy", func(s *api.PropagationPolicySpec) {
			s.Placement.ReplicaScheduling = dynamic()
			if random.IntN(2) == 0 {
				s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
			}
			if random.IntN(2) == 0 {
				s.Placement.ClusterAffinity = &api.ClusterAffinity{ExcludeClusters: []string{clusterName()}}
			}
		}))
	case 15:
		r.remove(keyOf(api.KindPlacement, fmt.Sprint("p", random.IntN(6))))
	}
}

// differingLines returns the lines in which two texts differ.
func differingLines(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	var out []string
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			out = append(out, "then "+x, "now  "+y)
		}
	}
	return strings.Join(out[:min(len(out), 20)], "\n")
}

// TestHistoryIsWhatAWatcherSaw lets a day of random events happen, with a restart of the server in between. The history must have
// every change of a decision that a watcher of the fleet saw, in order, and nothing else; and each decision must be
// explained later exactly as it was at that moment, with the very decision that was made.
func TestHistoryIsWhatAWatcherSaw(t *testing.T) {
	r := newRecorded(t)
	random := rand.New(rand.NewPCG(7, 11))
	r.write(provider())
	for i := range 6 {
		r.write(metric(fmt.Sprint("m", i), 0.5))
		r.write(cluster(fmt.Sprint("c", i), map[string]string{"tier": "gold"}, api.MetricRef{Name: fmt.Sprint("m", i)}))
	}
	const events = 720 // in a day
	for i := range events {
		r.event(random)
		if i == events/2 {
			r.restart()
		}
	}
	entries := r.entries()
	same := slices.EqualFunc(r.seen, entries, func(s sighting, e api.HistoryEntry) bool {
		return s.key == e.Object.Key && s.after == entryText(&e) && (s.revision == 0 || s.revision == e.Revision)
	})
	if !same {
		for i := range max(len(r.seen), len(entries)) {
			var saw, has string
			if i < len(r.seen) {
				saw = fmt.Sprintf("%s %s at %d", r.seen[i].key, r.seen[i].after, r.seen[i].revision)
			}
			if i < len(entries) {
				has = fmt.Sprintf("%s %s at %d", entries[i].Object.Key, entryText(&entries[i]), entries[i].Revision)
			}
			if saw != has && !strings.HasSuffix(saw, " at 0") {
				t.Fatalf("entry %d of %d (a watcher saw %d): the watcher saw\n%s, the history has\n%s", i, len(entries), len(r.seen), saw, has)
			}
		}
		t.Fatalf("a watcher saw %d changes, the history has %d", len(r.seen), len(entries))
	}
	previous, causes, wrong := map[api.Key]string{}, map[api.CauseType]int{}, 0
	for i := range entries {
		e := &entries[i]
		if before := entryText(&api.HistoryEntry{Object: e.Object, After: e.Before}); before != previous[e.Object.Key] {
			t.Errorf("at %d, %s was %s before, and %s after the entry before", e.Revision, e.Object.Key, before, previous[e.Object.Key])
		}
		previous[e.Object.Key] = entryText(e)
		causes[e.Cause.Type]++
		if e.After == nil {
			continue
		}
		x := r.at(e.Object.Key, e.Revision)
		if got, want := explanationText(t, x), r.captured[e.Revision][e.Object.Key]; got != want && want != deletedSince {
			if wrong++; wrong > 3 {
				t.FailNow()
			}
			t.Errorf("%s was explained otherwise at revision %d:\n%s", e.Object.Key, e.Revision, differingLines(want, got))
		}
		var chosen []string
		for _, c := range x.Candidates {
			if c.Selected {
				chosen = append(chosen, c.Cluster)
			}
		}
		slices.Sort(chosen)
		if was := slices.Sorted(slices.Values(e.After.Clusters)); !slices.Equal(chosen, was) {
			t.Errorf("%s was decided as %v at revision %d, and is explained as %v", e.Object.Key, was, e.Revision, chosen)
		}
	}
	t.Logf("%d entries, by cause: %v", len(entries), causes)
	if len(entries) < 300 || causes[api.CauseUnknown] > len(entries)/50 {
		t.Errorf("%d entries with %d unknown causes", len(entries), causes[api.CauseUnknown])
	}
}
