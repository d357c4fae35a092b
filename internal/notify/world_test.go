package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	storetest.SmallLogs()
	if childMain() {
		return
	}
	storetest.VerifyMain(m)
}

// testKey encrypts the secrets of tests.
var testKey = bytes.Repeat([]byte{7}, 32)

// world is a store with a fleet and a history, in which decisions move.
type world struct {
	t       testing.TB
	ctx     context.Context
	store   *store.Store
	codec   *store.Codec
	fleet   *fleet.Fleet
	history *history.Log
	batcher *store.Batcher
	network *netpolicy.Policy
	logs    logtest.Buffer
	runner  *Runner
	again   backoff.Backoff
	stop    func() // stops the runner

	revisions map[api.Key]int64
	objects   map[api.Key]api.Object // as last written
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{t: t, ctx: ctx, revisions: map[api.Key]int64{}, objects: map[api.Key]api.Object{}, network: netpolicy.OnLoopback(), stop: func() {}, again: backoff.Backoff{First: time.Millisecond, Most: 20 * time.Millisecond}}
	var err error
	if w.store, err = store.Open(ctx, store.Options{DataDir: t.TempDir(), NoFsync: true, MinFreeBytes: 1 << 20, HistoryBytes: 1 << 28, RequestTimeout: eventually.Limit, Patience: eventually.Limit}); err != nil {
		t.Fatal(err)
	}
	if w.codec, err = store.NewCodec(testKey); err != nil {
		t.Fatal(err)
	}
	w.fleet = fleet.New(fleet.Options{Store: w.store, Codec: w.codec})
	w.history = history.New(history.Options{Store: w.store, Retention: time.Hour, Size: 1 << 28})
	w.batcher = store.NewBatcher(w.store)
	var background sync.WaitGroup
	background.Go(func() { _ = w.fleet.Run(ctx) })
	background.Go(func() { _ = w.history.Run(ctx) })
	background.Go(func() { _ = w.batcher.Run(ctx) })
	t.Cleanup(func() {
		w.stop()
		cancel()
		background.Wait()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	<-w.fleet.Ready()
	return w
}

// run starts a runner, as at the beginning of a term.
func (w *world) run() {
	w.t.Helper()
	w.stop()
	w.runner = New(Options{
		Fleet: w.fleet, History: w.history, Batcher: w.batcher, Codec: w.codec, Network: w.network,
		Faults: fault.New(nil).Component("notifications"), Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
		Again: w.again,
	})
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = w.runner.Run(ctx) }()
	w.stop = func() { cancel(); <-done; w.stop = func() {} }
}

// put writes an object, and waits until the fleet shows it.
func (w *world) put(object api.Object) {
	w.t.Helper()
	key, m := api.KeyOf(object), object.Meta()
	m.UID, m.Generation = "uid-"+m.Name, m.Generation+1
	if errs := object.Validate(); len(errs) > 0 {
		w.t.Fatal(errs)
	}
	value, err := w.codec.EncodeSpec(object)
	if err != nil {
		w.t.Fatal(err)
	}
	revision, err := w.store.Commit(w.ctx, store.Write{Key: key, Part: store.Spec, Value: value, Expect: store.Any})
	if err != nil {
		w.t.Fatal(err)
	}
	w.revisions[key], w.objects[key] = revision, object
	w.shows(revision)
}

func (w *world) shows(revision int64) {
	w.t.Helper()
	if _, err := w.fleet.WaitRevision(w.ctx, revision); err != nil {
		w.t.Fatal(err)
	}
}

// placement writes a placement of the namespace shop.
func (w *world) placement(name string) api.Key {
	w.t.Helper()
	p := &api.Placement{Kind: api.KindPlacement, Metadata: api.Metadata{Name: name, Namespace: "shop", Labels: map[string]string{"tier": "prod"}}}
	p.SetDefaults()
	w.put(p)
	return api.KeyOf(p)
}

// move decides a placement for clusters, with conditions.
func (w *world) move(key api.Key, clusters []string, conditions ...api.Condition) {
	w.t.Helper()
	before, ok := w.objects[key].(*api.Placement)
	if !ok {
		w.t.Fatalf("there is no %s", key)
	}
	after := *before
	after.Status.Clusters, after.Status.DecisionRevision, after.Status.Conditions = clusters, before.Status.DecisionRevision+1, conditions
	w.decide(before, &after, history.Move{Time: time.Now(), Cause: &api.Cause{Type: api.CauseMetric, Object: &api.Key{Kind: api.KindMetric, Name: "load"}, Field: "status.value"}})
}

func (w *world) decide(before, after api.Object, move history.Move) {
	w.t.Helper()
	value, err := w.codec.EncodeStatus(after)
	if err != nil {
		w.t.Fatal(err)
	}
	record, _, err := history.Encode(before, after, move, value)
	if err != nil {
		w.t.Fatal(err)
	}
	key := api.KeyOf(after)
	if _, err := w.store.Derive(w.ctx, []store.StatusWrite{{Key: key, Value: value, SpecRevision: w.revisions[key], History: record}}); err != nil {
		w.t.Fatal(err)
	}
	w.objects[key] = after
}

// notification writes a notification. spec is its JSON without events, which are all.
func (w *world) notification(name, spec string) *api.Notification {
	w.t.Helper()
	if spec != "" {
		spec = "," + spec
	}
	object, err := api.Decode(fmt.Appendf(nil, `{"kind":"notification","metadata":{"name":%q},"spec":{"events":["moved","undecided","held","staged","evicting","recovered","brake","provider_failing","cluster_offline"]%s}}`, name, spec))
	if err != nil {
		w.t.Fatal(err)
	}
	object.SetDefaults()
	w.put(object)
	return object.(*api.Notification)
}

// status returns the status of a notification as it is stored.
func (w *world) status(name string) api.NotificationStatus {
	if entry := w.fleet.Snapshot().Get(api.Key{Kind: api.KindNotification, Name: name}); entry != nil {
		return entry.Object.(*api.Notification).Status
	}
	return api.NotificationStatus{}
}

// is waits until the condition of a notification has a reason.
func (w *world) is(name, reason string) {
	w.t.Helper()
	eventually.True(w.t, name+" is "+reason, func() bool {
		c := api.FindCondition(w.status(name).Conditions, api.ConditionDelivering)
		return c != nil && c.Reason == reason
	})
}

// request is one that a receiver got.
type request struct {
	*http.Request

	body []byte
}

func (r *request) decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(r.body, into); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
}

// receiver is a destination.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	requests []request
	answer   func(n int, w http.ResponseWriter, r *http.Request) // nil: 204
}

func newReceiver(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.requests = append(r.requests, request{q, body})
		n := len(r.requests)
		r.mu.Unlock()
		if r.answer != nil {
			r.answer(n, w, q)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.requests...)
}

// await waits for a number of requests.
func (r *receiver) await(t testing.TB, n int) []request {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d requests", n), func() bool { return len(r.got()) >= n })
	return r.got()
}

// summaries are what the events of a webhook say, without repetitions of an ID.
func summaries(t testing.TB, requests []request) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range requests {
		var e cloudEvent
		r.decode(t, &e)
		if !seen[e.ID] {
			seen[e.ID] = true
			all = append(all, e.Data.Summary)
		}
	}
	return all
}
