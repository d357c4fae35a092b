package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/static"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend scripts the responses of a provider, by provider name.
type backend struct {
	mu     sync.Mutex
	values map[string]float64
	err    error
	hangs  bool
	reads  int
	asked  []string
}

func (b *backend) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// seen returns how often the provider was read, and the queries of the last reading.
func (b *backend) seen() (reads int, asked []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads, b.asked
}

func (b *backend) Read(ctx context.Context, queries []string) (map[string]source.Reading, error) {
	b.mu.Lock()
	b.reads++
	b.asked = queries
	hangs, err := b.hangs, b.err
	out := map[string]source.Reading{}
	for _, query := range queries {
		if v, ok := b.values[query]; ok {
			out[query] = source.Reading{Value: v}
		}
	}
	b.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, source.Unreachable("no response in time")
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (b *backend) Close() {}

// world is a collector with a store that the test can inspect and break.
type world struct {
	*Collector
	t        *testing.T
	tracker  *firstread.Tracker
	backends map[string]*backend

	mu       sync.Mutex
	revision int64
	metrics  map[api.Key]*api.Metric
	provider map[api.Key]*api.MetricsProvider
	specs    map[api.Key]int64
	writes   int
	broken   error
	// unheard is the answer to writes that were stored; nil = no error.
	unheard error
	poison  map[string]int // metrics whose status cannot be stored, and how often that was tried
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, tracker: firstread.New(), backends: map[string]*backend{},
		metrics: map[api.Key]*api.Metric{}, provider: map[api.Key]*api.MetricsProvider{}, specs: map[api.Key]int64{},
	}
	scripted := source.Type{Name: api.ProviderPrometheus, New: func(p *api.MetricsProvider, _ *addresspolicy.Policy) (source.Source, error) {
		if b := w.backends[p.Spec.Prometheus.URL]; b != nil {
			return b, nil
		}
		return nil, errors.New("ca_cert contains no PEM certificate")
	}}
	w.Collector = New(Options{Types: []source.Type{static.Type, scripted}, Writer: w, Tracker: w.tracker, Normalize: columns.Normalize})
	return w
}

// restart starts a new collector on the same store, with everything loaded.
func (w *world) restart() *world {
	n := newWorld(w.t)
	n.backends, n.revision, n.metrics, n.provider, n.specs = w.backends, w.revision, w.metrics, w.provider, w.specs
	for key, p := range n.provider {
		n.Put(p, n.specs[key], n.specs[key], n.specs[key])
	}
	for key, m := range n.metrics {
		n.Put(m, n.specs[key], n.specs[key], n.specs[key])
	}
	return n
}

func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) WriteAll(_ context.Context, writes []status.Write) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return 0, w.broken
	}
	var stale []api.Key
	failed := map[api.Key]error{}
	w.revision++
	for _, write := range writes {
		key := api.KeyOf(write.Object)
		if w.specs[key] != write.SpecRevision {
			stale = append(stale, key)
			continue
		}
		if tried, refused := w.poison[key.Name]; refused {
			w.poison[key.Name] = tried + 1
			failed[key] = errors.New("too large")
			continue
		}
		w.writes++
		switch o := write.Object.(type) {
		case *api.Metric:
			w.metrics[key] = o
		case *api.MetricsProvider:
			w.provider[key] = o
		}
	}
	if w.unheard != nil {
		return 0, w.unheard
	}
	if stale != nil {
		return w.revision, &status.StaleError{Keys: stale}
	}
	if len(failed) > 0 {
		return w.revision, &status.FailedError{Failed: failed}
	}
	return w.revision, nil
}

// answers sets the answers to later writes: an error of those that are not stored, and of those that are.
func (w *world) answers(broken, unheard error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken, w.unheard = broken, unheard
}

func (w *world) put(object api.Object) int64 {
	w.mu.Lock()
	w.revision++
	revision := w.revision
	key := api.KeyOf(object)
	meta := object.Meta()
	meta.UID = "uid"
	object.SetDefaults()
	switch o := object.(type) {
	case *api.Metric:
		if old := w.metrics[key]; old != nil {
			o.Status, meta.Generation = old.Status, old.Metadata.Generation
		}
		meta.Generation++
		w.metrics[key] = o
	case *api.MetricsProvider:
		if old := w.provider[key]; old != nil {
			o.Status, meta.Generation = old.Status, old.Metadata.Generation
		}
		meta.Generation++
		w.provider[key] = o
	}
	w.specs[key] = revision
	w.mu.Unlock()
	w.Put(object, revision, revision, revision)
	w.tracker.Advance(revision)
	return revision
}

func (w *world) remove(key api.Key) int64 {
	w.mu.Lock()
	w.revision++
	revision := w.revision
	delete(w.metrics, key)
	delete(w.provider, key)
	delete(w.specs, key)
	w.mu.Unlock()
	w.Remove(key, revision, revision)
	w.tracker.Advance(revision)
	return revision
}

func (w *world) settle(revision int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	if _, err := w.tracker.Wait(ctx, revision); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) status(name string) api.MetricStatus {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.metrics[metricKey(name)]
	if m == nil {
		w.t.Fatalf("no metric %s", name)
	}
	return m.Status
}

func (w *world) providerCondition(name string) *api.Condition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return api.FindCondition(w.provider[providerKey(name)].Status.Conditions, api.ConditionAvailable)
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// expect checks value (nil = none) and reason ("Available" if there is a value).
func (w *world) expect(name string, value any, reason string) {
	w.t.Helper()
	s := w.status(name)
	got := any(nil)
	if s.Value != nil {
		got = *s.Value
	}
	c := api.FindCondition(s.Conditions, api.ConditionAvailable)
	if c == nil || got != value || c.Reason != reason || (c.Status == api.ConditionTrue) != (reason == api.ReasonAvailable) {
		w.t.Errorf("%s: value %v, condition %+v; want %v, %s", name, got, c, value, reason)
	}
}

func metricKey(name string) api.Key   { return api.Key{Kind: api.KindMetric, Name: name} }
func providerKey(name string) api.Key { return api.Key{Kind: api.KindMetricsProvider, Name: name} }

func staticProvider(name string, values map[string]float64) *api.MetricsProvider {
	return &api.MetricsProvider{Metadata: api.Metadata{Name: name}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values},
	}}
}

func liveProvider(name string) *api.MetricsProvider {
	return &api.MetricsProvider{Metadata: api.Metadata{Name: name}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: name}, Interval: "10s", Timeout: "5s",
	}}
}

func metricOf(name, provider, query string) *api.Metric {
	low, high := 0.0, 10.0
	return &api.Metric{Metadata: api.Metadata{Name: name}, Spec: api.MetricSpec{
		Min: &low, Max: &high, MetricsProvider: api.MetricProviderRef{Name: provider, Metric: query},
	}}
}

func TestStaticSettlesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		began := time.Now()
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 4})))
		w.settle(w.put(metricOf("load", "table", "load")))
		w.expect("load", 4.0, api.ReasonAvailable)
		if n := w.status("load").Normalized; n == nil || *n != 0.4 {
			t.Errorf("normalized is %v, want 0.4", n)
		}
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 8})))
		w.expect("load", 8.0, api.ReasonAvailable)
		w.settle(w.put(staticProvider("table", map[string]float64{"other": 8})))
		w.expect("load", 8.0, api.ReasonInvalidMetric)
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 80})))
		w.expect("load", 8.0, api.ReasonInvalidMetric)
		w.settle(w.remove(providerKey("table")))
		w.expect("load", 8.0, api.ReasonUnknownMetricsProvider)
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 1})))
		w.expect("load", 1.0, api.ReasonAvailable)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %s, want nothing", took)
		}
		before := w.count()
		faketime.Sleep(time.Hour)
		if n := w.count() - before; n != 0 {
			t.Errorf("%d writes in an hour without a change", n)
		}
	})
}

func TestMetricWithoutProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		w.settle(w.put(metricOf("load", "nowhere", "load")))
		w.expect("load", nil, api.ReasonUnknownMetricsProvider)
	})
}

func TestValuesFollowWithinAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := &backend{values: map[string]float64{"q": 1, "r": 2}}
		w.backends["prom"] = b
		defer w.run()()
		w.settle(w.put(liveProvider("prom")))
		w.settle(w.put(metricOf("a", "prom", "q")))
		w.settle(w.put(metricOf("b", "prom", "r")))
		w.settle(w.put(metricOf("c", "prom", "r")))
		w.expect("a", 1.0, api.ReasonAvailable)
		first := *w.status("a").ObservedAt

		// Unchanged values cause no writes, however often they are read.
		before := w.count()
		reads, _ := b.seen()
		faketime.Sleep(time.Minute)
		if n := w.count() - before; n != 0 {
			t.Errorf("%d writes without a change", n)
		}
		after, asked := b.seen()
		if n := after - reads; n < 6 || n > 7 {
			t.Errorf("%d readings in 6 intervals", n)
		}
		if len(asked) != 2 {
			t.Errorf("queries %q, want two for three metrics", asked)
		}
		// A changed value causes one write.
		b.set(func() { b.values["q"] = 7 })
		faketime.Sleep(10 * time.Second)
		w.expect("a", 7.0, api.ReasonAvailable)
		if n := w.count() - before; n != 1 {
			t.Errorf("%d writes for one changed value, want 1", n)
		}
		if !w.status("a").ObservedAt.After(first) {
			t.Error("observed_at did not change with the value")
		}
	})
}

func TestFailureKeepsTheLastValueAndItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := &backend{values: map[string]float64{"q": 1}}
		w.backends["prom"] = b
		defer w.run()()
		w.settle(w.put(liveProvider("prom")))
		w.settle(w.put(metricOf("a", "prom", "q")))
		faketime.Sleep(time.Hour)
		down := time.Now()
		b.set(func() { b.err = source.Unreachable("connection refused") })
		faketime.Sleep(time.Hour)
		w.expect("a", 1.0, api.ReasonUnreachableMetricsProvider)
		s := w.status("a")
		if age := down.Sub(*s.ObservedAt); age < 0 || age > 10*time.Second {
			t.Errorf("observed_at is %s before the failure, want the last successful reading", age)
		}
		if c := api.FindCondition(s.Conditions, api.ConditionAvailable); c.Message != `metrics_provider "prom": connection refused` || c.LastTransitionAt.Before(down) {
			t.Errorf("unexpected condition %+v", c)
		}
		if c := w.providerCondition("prom"); c == nil || c.Status != api.ConditionFalse || c.Message != "connection refused" {
			t.Errorf("unexpected condition %+v of the provider", c)
		}
		// Only one write for the metric and one for the provider in all that time.
		before := w.count()
		faketime.Sleep(time.Hour)
		if n := w.count() - before; n != 0 {
			t.Errorf("%d writes without a change", n)
		}
		b.set(func() { b.err = nil })
		faketime.Sleep(10 * time.Second)
		w.expect("a", 1.0, api.ReasonAvailable)
		if n := w.count() - before; n != 2 {
			t.Errorf("%d writes for the recovery, want 2", n)
		}
		// If a provider responds without the metric, the provider is healthy and the metric is not.
		b.set(func() { b.values = nil })
		faketime.Sleep(10 * time.Second)
		w.expect("a", 1.0, api.ReasonInvalidMetric)
		if c := w.providerCondition("prom"); c.Status != api.ConditionTrue {
			t.Errorf("unexpected condition %+v of the provider", c)
		}
	})
}

// TestSecretsThatAProviderRepeats checks that a provider's error message that repeats the credentials is not shown to
// users who may only read the metric.
func TestSecretsThatAProviderRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		secret, says, want string
	}{
		"a token":               {"hush-4711", "token hush-4711 is wrong", "token (secret) is wrong"},
		"in a header":           {"Bearer hush-4711", "got hush-4711", "got (secret)"},
		"a password":            {"reader:hush-4711", "the password hush-4711 is not that of reader", "the password (secret) is not that of (secret)"},
		"as it was sent":        {"reader:hush-4711", "Basic cmVhZGVyOmh1c2gtNDcxMQ==", "Basic (secret)"},
		"one that holds others": {"hush hush-4711", "hush hush-4711 and hush", "(secret) and (secret)"},
		"too short to be one":   {"a", "a bad token", "a bad token"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := &backend{err: source.Unreachable("%s", c.says)}
				w.backends["prom"] = b
				defer w.run()()
				provider := liveProvider("prom")
				provider.Spec.Headers = map[string]api.Secret{"X-Credentials": api.NewSecret(c.secret)}
				w.settle(w.put(provider))
				w.settle(w.put(metricOf("a", "prom", "q")))
				faketime.Sleep(time.Hour)
				if got := w.providerCondition("prom").Message; got != c.want {
					t.Errorf("message of the provider %q, want %q", got, c.want)
				}
				if got := api.FindCondition(w.status("a").Conditions, api.ConditionAvailable); got.Message != `metrics_provider "prom": `+c.want || got.Reason != api.ReasonUnreachableMetricsProvider {
					t.Errorf("the metric has %+v, want %q", got, c.want)
				}
			})
		})
	}
}

func TestHangingProviderDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bad, good := &backend{hangs: true}, &backend{values: map[string]float64{"q": 1}}
		w.backends["bad"], w.backends["good"] = bad, good
		defer w.run()()
		w.put(liveProvider("bad"))
		w.put(metricOf("x", "bad", "q"))
		began := time.Now()
		w.settle(w.put(liveProvider("good")))
		w.settle(w.put(metricOf("a", "good", "q")))
		if took := time.Since(began); took > 1*time.Second {
			t.Errorf("the working provider took %s", took)
		}
		for i := range 10 {
			good.set(func() { good.values["q"] = float64(i) })
			faketime.Sleep(10 * time.Second)
			w.expect("a", float64(i), api.ReasonAvailable)
		}
		w.expect("x", nil, api.ReasonUnreachableMetricsProvider)
		// After the provider is fixed, the hanging reading is abandoned.
		w.backends["bad2"] = &backend{values: map[string]float64{"q": 3}}
		p := liveProvider("bad")
		p.Spec.Prometheus = &api.PrometheusSpec{URL: "bad2"}
		began = time.Now()
		w.settle(w.put(p))
		w.expect("x", 3.0, api.ReasonAvailable)
		if took := time.Since(began); took != 0 {
			t.Errorf("the repaired provider took %s", took)
		}
	})
}

func TestChangedQueryDropsTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.backends["prom"] = &backend{values: map[string]float64{"q": 1}}
		defer w.run()()
		w.settle(w.put(liveProvider("prom")))
		w.settle(w.put(metricOf("a", "prom", "q")))
		narrow := metricOf("a", "prom", "q")
		*narrow.Spec.Min = 0.5
		*narrow.Spec.Max = 1.5
		w.settle(w.put(narrow))
		if n := w.status("a").Normalized; n == nil || *n != 0.5 {
			t.Errorf("normalized = %v after the range changed, want 0.5", n)
		}
		w.settle(w.put(metricOf("a", "prom", "absent")))
		w.expect("a", nil, api.ReasonInvalidMetric)
		w.settle(w.put(metricOf("a", "elsewhere", "q")))
		w.expect("a", nil, api.ReasonUnknownMetricsProvider)
	})
}

func TestProviderThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		w.settle(w.put(liveProvider("broken")))
		w.settle(w.put(metricOf("a", "broken", "q")))
		w.expect("a", nil, api.ReasonUnreachableMetricsProvider)
	})
}

func TestRestartWritesNothingAndAgesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := &backend{values: map[string]float64{"q": 1}}
		w.backends["prom"] = b
		stop := w.run()
		w.settle(w.put(liveProvider("prom")))
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 4})))
		w.settle(w.put(metricOf("a", "prom", "q")))
		w.settle(w.put(metricOf("load", "table", "load")))
		faketime.Sleep(time.Hour)
		stop()

		w = w.restart()
		stop = w.run()
		w.tracker.Advance(w.revision)
		w.settle(w.revision)
		faketime.Sleep(time.Minute)
		stop()
		if w.count() != 0 {
			t.Errorf("%d writes after a restart without a change", w.count())
		}

		// The provider stops together with the server: the value counted as current until the restart.
		b.set(func() { b.err = source.Unreachable("connection refused") })
		up := time.Now()
		w = w.restart()
		defer w.run()()
		faketime.Sleep(time.Minute)
		w.expect("a", 1.0, api.ReasonUnreachableMetricsProvider)
		if at := *w.status("a").ObservedAt; at.Before(up) {
			t.Errorf("observed_at is %s before the restart", up.Sub(at))
		}
	})
}

func TestRestartFinishesWhatWasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(staticProvider("table", map[string]float64{"load": 4}))
		revision := w.put(metricOf("load", "table", "load"))
		w = w.restart()
		defer w.run()()
		w.tracker.Advance(revision)
		w.settle(revision)
		w.expect("load", 4.0, api.ReasonAvailable)
	})
}

func TestFailedWriteIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.broken = errors.New("store is not available")
		defer w.run()()
		w.put(staticProvider("table", map[string]float64{"load": 4}))
		revision := w.put(metricOf("load", "table", "load"))
		faketime.Sleep(10 * time.Second)
		w.answers(nil, nil)
		w.settle(revision)
		w.expect("load", 4.0, api.ReasonAvailable)
	})
}

// The store may have a value although the write failed. If the metric has its earlier value again, that is written.
func TestValueAfterAWriteWithUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		w.put(staticProvider("table", map[string]float64{"load": 4}))
		w.settle(w.put(metricOf("load", "table", "load")))
		w.expect("load", 4.0, api.ReasonAvailable)
		w.answers(nil, errors.New("no response"))
		w.put(staticProvider("table", map[string]float64{"load": 5}))
		faketime.Sleep(100 * time.Millisecond)
		w.expect("load", 5.0, api.ReasonAvailable)
		w.answers(nil, nil)
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 4})))
		w.expect("load", 4.0, api.ReasonAvailable)
	})
}

// A static provider is not read again on its own, so a change while a retry is pending must not replace the retry.
func TestChangeWhileARetryIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		w.put(staticProvider("table", map[string]float64{"load": 4}))
		w.settle(w.put(metricOf("load", "table", "load")))
		w.answers(errors.New("store is not available"), nil)
		w.put(staticProvider("table", map[string]float64{"load": 5}))
		faketime.Sleep(100 * time.Millisecond)
		w.answers(nil, nil)
		w.settle(w.put(staticProvider("table", map[string]float64{"load": 6})))
		w.expect("load", 6.0, api.ReasonAvailable)
	})
}

// A metric whose status cannot be stored does not affect others, and is retried after increasing delays.
func TestOneStatusThatCannotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.poison = map[string]int{"bad": 0}
		b := &backend{values: map[string]float64{"q": 1}}
		w.backends["prom"] = b
		defer w.run()()
		w.settle(w.put(liveProvider("prom")))
		w.put(metricOf("bad", "prom", "q"))
		w.settle(w.put(metricOf("good", "prom", "q")))
		w.expect("good", 1.0, api.ReasonAvailable)
		faketime.Sleep(20 * time.Second)
		before := w.count()
		faketime.Sleep(10 * time.Minute)
		if n := w.count(); n != before {
			t.Errorf("%d writes without a change", n-before)
		}
		w.mu.Lock()
		tried := w.poison["bad"]
		delete(w.poison, "bad")
		w.mu.Unlock()
		if tried < 5 || tried > 50 {
			t.Errorf("tried %d times in 10 minutes", tried)
		}
		b.set(func() { b.values["q"] = 2 })
		faketime.Sleep(time.Minute)
		w.expect("good", 2.0, api.ReasonAvailable)
		w.expect("bad", 2.0, api.ReasonAvailable)
	})
}

// TestWriteRejectedByANewerRevision: the spec was written without a new generation while the status was being written.
func TestWriteRejectedByANewerRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(staticProvider("table", map[string]float64{"load": 4}))
		m := metricOf("load", "table", "load")
		w.put(m)
		w.mu.Lock()
		w.specs[metricKey("load")] = 99
		w.mu.Unlock()
		defer w.run()()
		synctest.Wait()
		if w.status("load").Value != nil {
			t.Fatal("a status was written based on an outdated revision")
		}
		w.Put(m, 99, 99, 99)
		synctest.Wait()
		w.expect("load", 4.0, api.ReasonAvailable)
	})
}

func TestLoopsEndWithTheirProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.run()()
		for i := range 20 {
			w.backends[fmt.Sprint("p", i)] = &backend{values: map[string]float64{"q": 1}}
			w.settle(w.put(liveProvider(fmt.Sprint("p", i))))
			w.settle(w.put(metricOf(fmt.Sprint("m", i), fmt.Sprint("p", i), "missing")))
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(w.Collectors()...)
		if n := series(t, registry); n != 40 {
			t.Errorf("%d series, want an age and a failure count for each provider", n)
		}
		for i := range 20 {
			w.remove(providerKey(fmt.Sprint("p", i)))
			w.remove(metricKey(fmt.Sprint("m", i)))
		}
		synctest.Wait()
		if len(w.loops) != 0 || len(w.Collector.metrics) != 0 {
			t.Errorf("%d loops and %d metrics left, want none", len(w.loops), len(w.Collector.metrics))
		}
		if n := series(t, registry); n != 0 {
			t.Errorf("%d series left, want none", n)
		}
	})
}

// series counts the series that name a provider.
func series(t *testing.T, registry prometheus.Gatherer) int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, family := range families {
		for _, m := range family.Metric {
			for _, label := range m.Label {
				if label.GetName() == "provider" {
					n++
				}
			}
		}
	}
	return n
}
