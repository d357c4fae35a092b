package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/announce"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

// testServer is a server on a real store and fleet. Decisions and signals are scripted by the test.
type testServer struct {
	*Server
	t         testing.TB
	url       string
	client    *http.Client
	store     *store.Store
	hooked    *hookedStore // the store as the server sees it
	codec     *store.Codec
	fleet     *fleet.Fleet
	decisions *fakeDecisions
	signals   *fakeSignals
	logs      *logtest.Buffer
	token     string
	stopRun   func() error // stops Run and returns its error
}

// startServer runs a server until the test ends; adjust may change its options.
func startServer(t testing.TB, adjust ...func(*Options)) *testServer {
	t.Helper()
	return startServerOn(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, adjust...)
}

func startServerOn(t testing.TB, storeOptions store.Options, adjust ...func(*Options)) *testServer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	storeOptions.MinFreeBytes = 1 << 20
	storeOptions.RequestTimeout, storeOptions.Patience = storetest.Patience, storetest.Patience
	storeOptions.Fatal = func(err error) { t.Errorf("store failed: %v", err) }
	opened, err := store.Open(ctx, storeOptions)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := store.NewCodec(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	logs := &logtest.Buffer{}
	logger := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	shown := fleet.New(fleet.Options{Store: opened, Codec: codec})
	var background sync.WaitGroup
	background.Go(func() {
		if err := shown.Run(ctx); err != nil {
			t.Errorf("fleet: %v", err)
		}
	})
	s := &testServer{
		t: t, store: opened, hooked: &hookedStore{Store: opened}, codec: codec, fleet: shown, logs: logs,
		decisions: &fakeDecisions{unstored: announce.NewSet[api.Key]()}, signals: &fakeSignals{store: opened, codec: codec},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	options := Options{
		Store: s.hooked, Fleet: shown, Codec: codec, Decisions: s.decisions, Signals: s.signals, Network: addresspolicy.OnLoopback(),
		Listener: listener, Logger: logger, Version: "1.2.3", Gatherer: registry, DrainTime: storetest.Patience,
	}
	for _, f := range adjust {
		f(&options)
	}
	s.Server, err = New(options)
	if err != nil {
		t.Fatal(err)
	}
	registry.MustRegister(s.Collectors()...)
	registry.MustRegister(s.options.Connections.Collectors()...)
	s.url = "http://" + listener.Addr().String()
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	runCtx, stopServer := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(runCtx) }()
	s.stopRun = sync.OnceValue(func() error {
		stopServer()
		return <-ran
	})
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := s.stopRun(); err != nil {
			t.Errorf("run: %v", err)
		}
		cancel()
		background.Wait()
		if err := opened.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	<-s.watches.events.begun // what is written from now on can be watched
	return s
}

// answer is a response with its body read.
type answer struct {
	*http.Response
	body []byte
}

func (a answer) problem(t testing.TB) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.Header.Get("Content-Type") != problem.MediaType || p.Status != a.StatusCode {
		t.Errorf("not a problem document: %d %q %s (%v)", a.StatusCode, a.Header.Get("Content-Type"), a.body, err)
	}
	return p
}

func decodeAs[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("decode %d %s: %v", a.StatusCode, a.body, err)
	}
	return v
}

// do sends a request; header contains names and values in turn.
func (s *testServer) do(method, path, body string, header ...string) answer {
	s.t.Helper()
	a, err := s.try(context.Background(), method, path, body, header...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// polls is how many readers wait for a change of an object.
func (s *testServer) polls(key api.Key) int {
	l := s.watches.events
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.polls[key])
}

func (s *testServer) try(ctx context.Context, method, path, body string, header ...string) (answer, error) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, reader)
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil {
		s.checkProblem(method, path, resp, data)
	}
	return answer{resp, data}, err
}

// checkProblem checks the type of every error in any test: it must be documented, with the documented status and title.
func (s *testServer) checkProblem(method, path string, resp *http.Response, body []byte) {
	s.t.Helper()
	if resp.Header.Get("Content-Type") != problem.MediaType {
		return
	}
	var p api.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		s.t.Errorf("%s %s: %s is not a problem document: %v", method, path, body, err)
		return
	}
	if info, ok := api.LookupProblem(p.Type); !ok || p.Status != info.Status || resp.StatusCode != info.Status || p.Title != info.Title {
		s.t.Errorf("%s %s: got %d %s, but the type is documented as %+v", method, path, resp.StatusCode, body, info)
	}
}

func (s *testServer) mustPut(path, body string, header ...string) answer {
	s.t.Helper()
	a := s.do(http.MethodPut, path, body, header...)
	if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusCreated {
		s.t.Fatalf("PUT %s: %d %s", path, a.StatusCode, a.body)
	}
	return a
}

// writeStatus writes a status the way its owner does.
func (s *testServer) writeStatus(object api.Object) int64 {
	s.t.Helper()
	entry := s.fleet.Snapshot().Get(api.KeyOf(object))
	value, err := s.codec.EncodeStatus(object)
	if err != nil {
		s.t.Fatal(err)
	}
	revision, err := s.store.Derive(context.Background(), []store.StatusWrite{{Key: api.KeyOf(object), Value: value, SpecRevision: entry.SpecRevision}})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.fleet.WaitRevision(context.Background(), revision); err != nil {
		s.t.Fatal(err)
	}
	return revision
}

// fakeDecisions records its calls. A test can set its functions.
type fakeDecisions struct {
	mu       sync.Mutex
	settled  []int64
	settle   func(ctx context.Context, revision int64) error
	explain  func(key api.Key) (*api.Explanation, error)
	simulate func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error)
	preview  func(placement *api.Placement) api.PlacementStatus

	unstored *announce.Set[api.Key]

	bind         func(workload *api.Workload) api.WorkloadStatus
	propagate    func(policy *api.PropagationPolicy) map[api.Key]api.PreviewedWorkload
	bindings     []api.Binding // returned for every policy
	reportHealth func(ctx context.Context, key api.Key, report api.HealthReport) (int64, error)
}

func (f *fakeDecisions) Settle(ctx context.Context, revision int64) error {
	f.mu.Lock()
	f.settled = append(f.settled, revision)
	settle := f.settle
	f.mu.Unlock()
	if settle != nil {
		return settle(ctx, revision)
	}
	return nil
}

func (f *fakeDecisions) NextUnstored(ctx context.Context) ([]api.Key, error) {
	return f.unstored.Next(ctx)
}

func (f *fakeDecisions) Explain(key api.Key) (*api.Explanation, error) {
	if f.explain != nil {
		return f.explain(key)
	}
	return &api.Explanation{Namespace: key.Namespace, Name: key.Name, Summary: "as told", Candidates: []api.Candidate{}}, nil
}

func (f *fakeDecisions) ExplainPast(_ context.Context, past *fleet.Snapshot, key api.Key, at time.Time) (*api.Explanation, error) {
	return &api.Explanation{Namespace: key.Namespace, Name: key.Name, Summary: fmt.Sprintf("as told at %d", past.Revision()), At: at, Candidates: []api.Candidate{}}, nil
}

func (f *fakeDecisions) Observe(object api.Object) api.Object {
	cluster, ok := object.(*api.Cluster)
	if !ok {
		return object
	}
	observed := *cluster
	if observed.Status.State == "" {
		observed.Status.State = api.StateOnline
	}
	return &observed
}

func (f *fakeDecisions) Preview(placement *api.Placement) (api.PlacementStatus, *api.Explanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	status := placement.Status
	if f.preview != nil {
		status = f.preview(placement)
	}
	return status, &api.Explanation{Summary: "as previewed"}, nil
}

func (f *fakeDecisions) PreviewWorkload(ctx context.Context, workload *api.Workload) (api.WorkloadStatus, *api.Explanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	status := workload.Status
	if f.bind != nil {
		status = f.bind(workload)
	}
	return status, &api.Explanation{Summary: "as bound"}, nil
}

func (f *fakeDecisions) PreviewPolicy(_ context.Context, policy *api.PropagationPolicy) (map[api.Key]api.PreviewedWorkload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.propagate == nil {
		return nil, nil
	}
	return f.propagate(policy), nil
}

func (f *fakeDecisions) ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy {
	f.mu.Lock()
	defer f.mu.Unlock()
	observed := *policy
	observed.Status = api.PropagationPolicyStatus{ObservedGeneration: policy.Metadata.Generation, Bindings: f.bindings}
	return &observed
}

func (f *fakeDecisions) ReportHealth(ctx context.Context, key api.Key, report api.HealthReport) (int64, error) {
	return f.reportHealth(ctx, key, report)
}

func (f *fakeDecisions) Simulate(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
	if f.simulate != nil {
		return f.simulate(ctx, request)
	}
	result := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}, Changes: []api.Change{}}
	for _, raw := range request.Objects {
		object, err := api.Decode(raw)
		if err != nil {
			return nil, err
		}
		if err := object.Validate().Err(); err != nil {
			return nil, err
		}
		result.Objects = append(result.Objects, object)
	}
	return result, nil
}

// fakeSignals writes heartbeats to the store.
type fakeSignals struct {
	store  *store.Store
	codec  *store.Codec
	settle func(ctx context.Context, revision int64) (int64, error)
	live   func(cloud string, options api.LiveOptions) (*api.LiveOpenStack, error)
	report func(cloud string, report api.CloudReport) (int64, bool, error)
	mu     sync.Mutex
}

func (f *fakeSignals) ReportCloud(_ context.Context, cloud string, report api.CloudReport) (int64, bool, error) {
	if f.report == nil {
		return 0, false, nil
	}
	return f.report(cloud, report)
}

func (f *fakeSignals) LiveOpenStack(_ context.Context, cloud string, options api.LiveOptions) (*api.LiveOpenStack, error) {
	return f.live(cloud, options)
}

func (f *fakeSignals) Settle(ctx context.Context, revision int64) (int64, error) {
	if f.settle != nil {
		return f.settle(ctx, revision)
	}
	return revision, nil
}

func (f *fakeSignals) Heartbeat(ctx context.Context, name string, report api.Heartbeat) (int64, error) {
	key := api.Key{Kind: api.KindCluster, Name: name}
	spec, _, err := f.store.Read(ctx, key)
	if err != nil {
		return 0, err
	}
	if spec == nil {
		return 0, errors.New("no such cluster")
	}
	now := time.Now().UTC()
	cluster := &api.Cluster{Metadata: api.Metadata{Name: name}, Status: api.ClusterStatus{
		State: api.StateOnline, LastHeartbeatAt: &now, Allocated: maps.Clone(report.Allocated),
	}}
	value, err := f.codec.EncodeStatus(cluster)
	if err != nil {
		return 0, err
	}
	return f.store.Derive(ctx, []store.StatusWrite{{Key: key, Value: value, SpecRevision: spec.ModRevision}})
}

func (f *fakeSignals) Report(ctx context.Context, name string, amounts clusterhealth.Amounts) (int64, error) {
	f.mu.Lock() // the monitor adds this to the status on the next write
	defer f.mu.Unlock()
	key := api.Key{Kind: api.KindCluster, Name: name}
	spec, status, err := f.store.Read(ctx, key)
	if err != nil {
		return 0, err
	}
	if spec == nil {
		return 0, errors.New("no such cluster")
	}
	cluster := &api.Cluster{Metadata: api.Metadata{Name: name}}
	if status != nil {
		if err := f.codec.DecodeStatus(cluster, status.Value); err != nil {
			return 0, err
		}
	}
	for into, from := range map[*api.Quantities]api.Quantities{&cluster.Status.Allocatable: amounts.Allocatable, &cluster.Status.Allocated: amounts.Allocated} {
		if *into == nil {
			*into = api.Quantities{}
		}
		maps.Copy(*into, from)
	}
	if amounts.Complete {
		now := time.Now().UTC()
		cluster.Status.CapacityReportedAt = &now
	}
	value, err := f.codec.EncodeStatus(cluster)
	if err != nil {
		return 0, err
	}
	return f.store.Derive(ctx, []store.StatusWrite{{Key: key, Value: value, SpecRevision: spec.ModRevision}})
}

// clock is a clock that the test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// hookedStore can run a function before the next commit.
type hookedStore struct {
	Store
	mu     sync.Mutex
	before func()
}

func (h *hookedStore) Commit(ctx context.Context, writes ...store.Write) (int64, error) {
	h.mu.Lock()
	before := h.before
	h.before = nil
	h.mu.Unlock()
	if before != nil {
		before()
	}
	return h.Store.Commit(ctx, writes...)
}

// beforeNextCommit runs a function before the server's next write.
func (s *testServer) beforeNextCommit(do func()) {
	s.hooked.mu.Lock()
	defer s.hooked.mu.Unlock()
	s.hooked.before = do
}

// commitPast writes a spec the way another server would.
func (s *testServer) commitPast(key api.Key, value []byte) {
	s.t.Helper()
	if _, err := s.store.Commit(context.Background(), store.Write{Key: key, Part: store.Spec, Value: value, Expect: store.Any}); err != nil {
		s.t.Error(err)
	}
}
