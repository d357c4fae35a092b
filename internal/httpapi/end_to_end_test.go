package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// startEndToEnd is startServer with the real reconciler and signals.
func startEndToEnd(t testing.TB, storeOptions store.Options, adjust ...func(*Options)) *testServer {
	t.Helper()
	var runs []func(context.Context) error
	s := startServerOn(t, storeOptions, append(adjust, func(o *Options) {
		opened := o.Store.(*hookedStore).Store.(*store.Store)
		codec := o.Codec.(*store.Codec)
		batcher := store.NewBatcher(opened)
		signals := signal.New(signal.Options{Network: addresspolicy.OnLoopback(), Fleet: o.Fleet, Store: opened, Codec: codec, Batcher: batcher})
		decisions := reconcile.New(reconcile.Options{Store: opened, Fleet: o.Fleet, Codec: codec, ReadConstant: signal.ReadConstant})
		o.Decisions, o.Signals = decisions, signals
		runs = []func(context.Context) error{batcher.Run, decisions.Run, signals.Run}
	})...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range runs {
		running.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

// A client that writes a placement gets the decision with the response. After a change to something that decisions
// depend on, the response comes when they have changed.
func TestWritesAreAnsweredWithTheirDecisions(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	s.mustPut("/v1/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"load":0.25}}}}`)
	s.mustPut("/v1/metrics/load", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"load"}}}`)
	s.mustPut("/v1/clusters/eu-1", `{"metadata":{"labels":{"location":"DE"}},"spec":{"metrics":[{"name":"load"}]}}`)
	s.mustPut("/v1/clusters/us-1", `{"metadata":{"labels":{"location":"US"}},"spec":{}}`)

	path := "/v1/namespaces/shop/placements/web"
	clusters := func(a answer) []string {
		t.Helper()
		placement := decodeAs[api.Placement](t, a)
		if placement.Status.ObservedGeneration != placement.Metadata.Generation {
			t.Errorf("status of generation %d, want %d", placement.Status.ObservedGeneration, placement.Metadata.Generation)
		}
		return placement.Status.Clusters
	}
	if got := clusters(s.mustPut(path, `{"spec":{"label_constraints":["location is DE"]}}`)); !slices.Equal(got, []string{"eu-1"}) {
		t.Errorf("clusters %v, want eu-1", got)
	}
	cluster := decodeAs[api.Cluster](t, s.do(http.MethodGet, "/v1/clusters/eu-1", ""))
	if len(cluster.Status.Metrics) != 1 || cluster.Status.Metrics[0].Value == nil || *cluster.Status.Metrics[0].Value != 0.25 {
		t.Errorf("metrics of the cluster: %+v", cluster.Status.Metrics)
	}
	explanation := decodeAs[api.Explanation](t, s.do(http.MethodGet, path+"/explanation", ""))
	if explanation.Total != 2 || explanation.Feasible != 1 || len(explanation.Candidates) != 2 {
		t.Errorf("explanation: %+v", explanation)
	}

	simulated := s.do(http.MethodPost, "/v1/simulations", `{"delete":[{"kind":"cluster","name":"eu-1"}]}`)
	result := decodeAs[struct{ Changes []api.Change }](t, simulated)
	if len(result.Changes) != 1 || len(result.Changes[0].To) != 0 {
		t.Errorf("simulation: %d %s", simulated.StatusCode, simulated.body)
	}
	if got := clusters(s.do(http.MethodGet, path, "")); !slices.Equal(got, []string{"eu-1"}) {
		t.Errorf("the simulation changed the decision to %v", got)
	}

	s.do(http.MethodDelete, "/v1/clusters/eu-1", "")
	if got := clusters(s.do(http.MethodGet, path, "")); len(got) != 0 {
		t.Errorf("clusters %v after the deletion of the cluster, want none", got)
	}
	if a := s.do(http.MethodPost, path+"/reschedule", ""); a.StatusCode != 200 || decodeAs[api.Placement](t, a).Status.ObservedRescheduleRequests != 1 {
		t.Errorf("reschedule: %d %s", a.StatusCode, a.body)
	}
	a := s.do(http.MethodPost, "/v1/clusters/us-1/heartbeat", `{"allocatable":{"cpu":"8"}}`)
	if got := decodeAs[api.Cluster](t, a); a.StatusCode != 200 || got.Status.Available["cpu"] != "8" {
		t.Errorf("heartbeat: %d %s", a.StatusCode, a.body)
	}
	bad := s.do(http.MethodPost, "/v1/simulations", `{"objects":[{"kind":"placement","metadata":{"name":"p"},"spec":{"number_of_clusters":-1}}]}`)
	if bad.StatusCode != 422 || !strings.Contains(string(bad.body), "number_of_clusters") {
		t.Errorf("invalid object in a simulation: got %d %s, want 422", bad.StatusCode, bad.body)
	}
}

// BenchmarkPutPlacementDecided is BenchmarkPutPlacement over 100 clusters, with the durable decision in the response.
func BenchmarkPutPlacementDecided(b *testing.B) {
	s := startEndToEnd(b, store.Options{DataDir: b.TempDir()})
	for i := range 100 {
		s.mustPut(fmt.Sprintf("/v1/clusters/c%d?wait=0s", i), fmt.Sprintf(`{"metadata":{"labels":{"location":"%s"}},"spec":{}}`, []string{"DE", "US"}[i%2]))
	}
	putPlacements(b, s, func(a answer) bool { return strings.Contains(string(a.body), `"decisions"`) })
}

// A write with a preview's token commits exactly the previewed decision, for a new placement and for one that moves,
// and later decisions keep it.
func TestPreviewsAreKept(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	const clusters = 12
	for i := range clusters {
		s.mustPut(fmt.Sprintf("/v1/clusters/c%02d", i), fmt.Sprintf(`{"metadata":{"labels":{"half":"%d"}},"spec":{}}`, i%2))
	}
	for round := range 8 {
		// Without metrics, all clusters are equal. The tie is broken by the placement's UID, which must be that of the
		// preview.
		path := fmt.Sprintf("/v1/namespaces/shop/placements/p%d", round)
		for n := 1; n <= 3; n++ {
			body := fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"p%d"},"spec":{"number_of_clusters":%d,"label_constraints":["half is %d"]}}`, round, n, n%2)
			p := s.mustPreview(body)
			if len(p.Clusters) != n || !p.Satisfied {
				t.Fatalf("unexpected preview %+v", p)
			}
			a := s.do(http.MethodPut, path, body, "Preview-Token", p.Token)
			if got := decodeAs[api.Placement](t, a); a.StatusCode >= 300 || !slices.Equal(got.Status.Clusters, p.Clusters) {
				t.Fatalf("%d: got %v, previewed %v: %.300s", a.StatusCode, got.Status.Clusters, p.Clusters, a.body)
			}
			s.mustPut("/v1/clusters/c00", fmt.Sprintf(`{"metadata":{"labels":{"half":"0"}},"spec":{"region":"r%d-%d"}}`, round, n))
			if got := decodeAs[api.Placement](t, s.do(http.MethodGet, path, "")); !slices.Equal(got.Status.Clusters, p.Clusters) || got.Status.ObservedGeneration != int64(n) {
				t.Errorf("clusters %v later, previewed %v", got.Status.Clusters, p.Clusters)
			}
		}
	}
	body := `{"metadata":{"namespace":"shop","name":"late"},"spec":{"number_of_clusters":6,"label_constraints":["half is 0"]}}`
	p := s.mustPreview(body)
	s.do(http.MethodDelete, "/v1/clusters/c02", "")
	a := s.do(http.MethodPut, "/v1/namespaces/shop/placements/late", body, "Preview-Token", p.Token)
	if a.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("got %d %s although a previewed cluster was deleted, want 412", a.StatusCode, a.body)
	}
}

// When the response to the PUT of a score arrives, a placement that ranks by it has moved.
func TestScoresAreAnsweredWithTheirDecisions(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	for _, cluster := range []string{"c1", "c2"} {
		s.mustPut("/v1/clusters/"+cluster, `{"spec":{}}`)
	}
	s.mustPut(webPath, `{"spec":{"number_of_clusters":1,"strategy":"prioritizers","prioritizer_policy":{"mode":"exact","configurations":[
		{"type":"addon","resource_name":"load","score_name":"idle","weight":1}]}}}`)
	at := func() []string {
		return decodeAs[api.Placement](t, s.do(http.MethodGet, webPath, "")).Status.Clusters
	}
	for _, want := range []string{"c2", "c1", "c2"} {
		other := map[string]string{"c1": "c2", "c2": "c1"}[want]
		s.mustPut("/v1/clusters/"+want+"/placement-scores/load", `{"spec":{"scores":{"idle":90}}}`)
		s.mustPut("/v1/clusters/"+other+"/placement-scores/load", `{"spec":{"scores":{"idle":-90}}}`)
		if got := at(); !slices.Equal(got, []string{want}) {
			t.Errorf("on %v, want %s", got, want)
		}
	}
	simulated := decodeAs[struct {
		Objects []anyObject  `json:"objects"`
		Changes []api.Change `json:"changes"`
	}](t, s.do(http.MethodPost, "/v1/simulations", `{"now":"2040-01-01T00:00:00Z","objects":[
		{"kind":"placement_score","metadata":{"name":"load","cluster":"c2"},"spec":{"scores":{"idle":90},"valid_until":"2030-01-01T00:00:00Z"}},
		{"kind":"placement_score","metadata":{"name":"load","cluster":"c1"},"spec":{"scores":{"idle":1}}},
		{"kind":"cluster_set","metadata":{"name":"all"},"spec":{"selector":{}}}]}`))
	if len(simulated.Changes) != 1 || !slices.Equal(simulated.Changes[0].To, []string{"c1"}) {
		t.Errorf("changes %+v, want the move to c1", simulated.Changes)
	}
	if len(simulated.Objects) < 3 || !strings.Contains(fmt.Sprint(simulated.Objects[0].Status), "Expired") {
		t.Errorf("objects %+v, want the placement with an expired score", simulated.Objects)
	}
}
