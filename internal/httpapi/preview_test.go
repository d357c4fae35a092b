package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// deciding makes every decision choose these clusters.
func (f *fakeDecisions) deciding(clusters ...string) {
	f.previewing(func(placement *api.Placement) api.PlacementStatus {
		return decided(placement, clusters...)
	})
}

func (f *fakeDecisions) previewing(preview func(*api.Placement) api.PlacementStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.preview = preview
}

func decided(placement *api.Placement, clusters ...string) api.PlacementStatus {
	status := placement.Status
	status.ObservedGeneration = placement.Metadata.Generation
	status.DecisionRevision++
	status.Clusters, status.Decisions = clusters, nil
	for i, name := range clusters {
		status.Decisions = append(status.Decisions, api.Decision{Cluster: name, Rank: int64(i + 1), Score: 1 / float64(i+1)})
	}
	status.Conditions = []api.Condition{{Type: api.ConditionSatisfied, Status: api.ConditionTrue}}
	return status
}

const webPath = "/v1/namespaces/shop/placements/web"

func webBody(n int) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"web"},"spec":{"number_of_clusters":%d}}`, n)
}

func (s *testServer) mustPreview(body string) api.Preview {
	s.t.Helper()
	a := s.do(http.MethodPost, "/v1/previews", body)
	if a.StatusCode != http.StatusCreated {
		s.t.Fatalf("preview: %d %s", a.StatusCode, a.body)
	}
	return decodeAs[api.Preview](s.t, a)
}

func TestPreviewShowsTheDecisionAndChangesNothing(t *testing.T) {
	now := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 123456789, time.UTC)}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	s.decisions.deciding("c1", "c2")
	p := s.mustPreview(webBody(2))
	if p.Token != p.ID || p.Kind != api.KindPlacement || p.Namespace != "shop" || p.Name != "web" || p.Summary != "as previewed" || !p.Satisfied ||
		!slices.Equal(p.Clusters, []string{"c1", "c2"}) || len(p.Decisions) != 2 || p.Current == nil || len(p.Current) != 0 {
		t.Errorf("unexpected preview %+v", p)
	}
	if d := p.ExpiresAt.Sub(now.now()); d > api.PreviewLifetime || d < api.PreviewLifetime-time.Second {
		t.Errorf("the preview expires after %s, want its lifetime", d)
	}
	a := s.do(http.MethodGet, "/v1/previews/"+p.ID, "")
	if again := decodeAs[api.Preview](t, a); a.StatusCode != 200 || fmt.Sprint(again) != fmt.Sprint(p) {
		t.Errorf("GET: %d %s, want %+v", a.StatusCode, a.body, p)
	}
	if a := s.do(http.MethodGet, webPath, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("GET of the previewed placement: got %d, want 404", a.StatusCode)
	}

	placement := decodeAs[*api.Placement](t, s.mustPut(webPath, webBody(1)))
	placement.Status = decided(placement, "c9")
	s.writeStatus(placement)
	p = s.mustPreview(webBody(2))
	if !slices.Equal(p.Current, []string{"c9"}) || !slices.Equal(p.Clusters, []string{"c1", "c2"}) {
		t.Errorf("preview of an existing placement: got %+v", p)
	}
	if got := decodeAs[api.Placement](t, s.do(http.MethodGet, webPath, "")); *got.Spec.NumberOfClusters != 1 || got.Status.Clusters[0] != "c9" {
		t.Errorf("the preview modified the placement: %+v", got)
	}
}

// The decision is made for the placement as it would be stored.
func TestPreviewIsOfThePlacementAsItWouldBeStored(t *testing.T) {
	s := startServer(t)
	var asked atomic.Pointer[api.Placement]
	s.decisions.previewing(func(p *api.Placement) api.PlacementStatus {
		given := *p
		asked.Store(&given)
		return decided(p, "c1")
	})
	s.mustPreview(webBody(2))
	if p := asked.Load(); p.Metadata.UID == "" || p.Metadata.Generation != 1 || p.Spec.Strategy != api.StrategyMetrics || len(p.Status.Clusters) > 0 {
		t.Errorf("new placement: got %+v", p)
	}
	placement := decodeAs[*api.Placement](t, s.mustPut(webPath, webBody(1)))
	placement.Status = decided(placement, "c9")
	s.writeStatus(placement)
	s.mustPreview(webBody(2))
	if p := asked.Load(); p.Metadata.UID != placement.Metadata.UID || p.Metadata.Generation != 2 || p.Status.Clusters[0] != "c9" || *p.Spec.NumberOfClusters != 2 {
		t.Errorf("other spec: got %+v", p)
	}
	s.mustPreview(webBody(1))
	if p := asked.Load(); p.Metadata.Generation != 1 || p.Status.Clusters[0] != "c9" {
		t.Errorf("same spec: got %+v", p)
	}
}

func TestPreviewIsOfTheDefaultNamespace(t *testing.T) {
	if p := startServer(t).mustPreview(`{"metadata":{"name":"web"},"spec":{}}`); p.Namespace != api.DefaultNamespace {
		t.Errorf("preview in namespace %q, want default", p.Namespace)
	}
}

func TestPreviewRejects(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		name, body string
		status     int
		fields     string
	}{
		{"no name", `{"metadata":{"namespace":"shop"},"spec":{}}`, 422, "metadata.name"},
		{"empty object", `{}`, 422, "metadata.name"},
		{"other kind", `{"kind":"cluster","metadata":{"namespace":"shop","name":"web"},"spec":{}}`, 422, "kind"},
		{"bad names", `{"metadata":{"namespace":"../x","name":"A_B"},"spec":{}}`, 422, "metadata.name metadata.namespace"},
		{"unknown field", `{"metadata":{"namespace":"shop","name":"web"},"spec":{"number":1}}`, 422, "spec.number"},
		{"broken rules", `{"metadata":{"namespace":"shop","name":"web"},"spec":{"number_of_clusters":-1,"label_constraints":["a <> b"]}}`, 422, "spec.number_of_clusters spec.label_constraints[0]"},
		{"list as metadata", `{"metadata":[],"spec":{}}`, 422, "metadata"},
		{"array", `[]`, 422, ""},
		{"not JSON", `{"spec":`, 400, ""},
		{"empty", ``, 400, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := s.do(http.MethodPost, "/v1/previews", test.body)
			if a.StatusCode != test.status {
				t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, test.status)
			}
			var got []string
			for _, e := range a.problem(t).Errors {
				got = append(got, e.Field)
			}
			for _, want := range strings.Fields(test.fields) {
				if !slices.Contains(got, want) {
					t.Errorf("fields %q do not contain %q: %s", got, want, a.body)
				}
			}
		})
	}
	for _, id := range []string{"none", strings.Repeat("0", previewIDDigits), strings.Repeat("F", previewIDDigits), "..%2ftokens", "x%00"} {
		if a := s.do(http.MethodGet, "/v1/previews/"+id, ""); a.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d %s", id, a.StatusCode, a.body)
		}
	}
	for range s.fleet.Snapshot().AllSystem(KindPreview) {
		t.Error("something was kept")
	}
}

func TestPreviewsNeedTheRightToRead(t *testing.T) {
	s := startServer(t, authenticated)
	viewer, other, agent := s.addToken(auth.RoleViewer, "shop"), s.addToken(auth.RoleViewer, "other"), s.addToken(auth.RoleAgent)
	s.token = viewer
	p := s.mustPreview(webBody(1))
	if a := s.do(http.MethodPut, webPath, webBody(1), "Preview-Token", p.Token); a.StatusCode != http.StatusForbidden {
		t.Errorf("write by a viewer: got %d, want 403", a.StatusCode)
	}
	for who, token := range map[string]string{"a reader of another namespace": other, "an agent": agent} {
		s.token = token
		if a := s.do(http.MethodPost, "/v1/previews", webBody(1)); a.StatusCode != http.StatusForbidden {
			t.Errorf("preview by %s: got %d, want 403", who, a.StatusCode)
		}
		if a := s.do(http.MethodGet, "/v1/previews/"+p.ID, ""); a.StatusCode != http.StatusForbidden {
			t.Errorf("read by %s: got %d, want 403", who, a.StatusCode)
		}
	}
	s.token = viewer
	if a := s.do(http.MethodGet, "/v1/previews/"+p.ID, ""); a.StatusCode != http.StatusOK {
		t.Errorf("read by the creator: got %d, want 200", a.StatusCode)
	}
}

func TestPreviewTokenCommitsExactlyTheDecision(t *testing.T) {
	s := startServer(t)
	s.decisions.deciding("c1", "c2")
	p := s.mustPreview(webBody(2))
	record, _, err := s.previews.readPreview(context.Background(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	watch := s.watch("/v1/watch?kinds=placement").started()
	a := s.do(http.MethodPut, webPath, webBody(2), "Preview-Token", p.Token)
	got := decodeAs[api.Placement](t, a)
	if a.StatusCode != http.StatusCreated || !slices.Equal(got.Status.Clusters, p.Clusters) || got.Status.ObservedGeneration != 1 {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	// Ties depend on the UID, so that the placement must get the one that it was decided with.
	if got.Metadata.UID != record.Object.Meta().UID {
		t.Errorf("UID %s, want %s as previewed", got.Metadata.UID, record.Object.Meta().UID)
	}
	// Watchers never see the spec without the decision.
	if e := watch.expect("put shop/web")[0].data.Object; fmt.Sprint(e.Status["clusters"]) != "[c1 c2]" {
		t.Errorf("the first event of the watch is %+v, want the decision", e)
	}
	spec, status, err := s.store.Read(context.Background(), api.KeyOf(&got))
	if err != nil || status == nil || spec.ModRevision != status.ModRevision {
		t.Errorf("spec at %v, status at %v (%v), want one transaction", spec, status, err)
	}

	// An update after the scores have changed: the previewed order stays.
	p = s.mustPreview(webBody(3))
	s.decisions.deciding("c2", "c1")
	a = s.do(http.MethodPut, webPath, webBody(3), "Preview-Token", p.Token)
	got = decodeAs[api.Placement](t, a)
	if a.StatusCode != http.StatusOK || !slices.Equal(got.Status.Clusters, []string{"c1", "c2"}) || got.Status.ObservedGeneration != 2 {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	for i, d := range got.Status.Decisions {
		if d.Cluster != got.Status.Clusters[i] || d.Rank != int64(i+1) {
			t.Errorf("decision %d is %+v", i, d)
		}
	}
}

func TestPreviewTokenIsRefused(t *testing.T) {
	now := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	labelled := `{"metadata":{"namespace":"shop","name":"web","labels":{"a":"b"}},"spec":{"number_of_clusters":2}}`
	grouped := func(sizes ...int) func(*api.Placement) api.PlacementStatus {
		return func(p *api.Placement) api.PlacementStatus {
			status := decided(p, "c1", "c2", "c3")
			rest := status.Clusters
			for i, n := range sizes {
				status.DecisionGroups = append(status.DecisionGroups, api.ChosenGroup{Index: int64(i), Clusters: rest[:n], ClusterCount: int64(n)})
				rest = rest[n:]
			}
			return status
		}
	}
	for _, test := range []struct {
		name          string
		previewed     string
		before, after func()
		path, body    string
		want          string // part of the detail; "" = accepted
	}{
		{name: "unchanged", previewed: webBody(2)},
		{name: "just before expiry", previewed: webBody(2), after: func() { now.advance(api.PreviewLifetime - time.Millisecond) }},
		{name: "expired", previewed: webBody(2), after: func() { now.advance(api.PreviewLifetime) },
			want: "the preview does not exist or has expired: plan again"},
		{name: "another name", previewed: webBody(2), path: "/v1/namespaces/shop/placements/web2", body: `{"spec":{"number_of_clusters":2}}`,
			want: `the preview was made for placement "shop/web", not for placement "shop/web2": plan again`},
		{name: "another namespace", previewed: webBody(2), path: "/v1/namespaces/stock/placements/web", body: `{"spec":{"number_of_clusters":2}}`,
			want: `the preview was made for placement "shop/web", not for placement "stock/web": plan again`},
		{name: "another spec", previewed: webBody(2), body: webBody(3), want: `the preview was made for another spec of placement "shop/web": plan again`},
		{name: "other labels", previewed: webBody(2), body: labelled},
		{name: "another decision", previewed: webBody(2), after: func() { s.decisions.deciding("c1", "c3") },
			want: "the fleet changed since the preview: plan again: it showed [c1, c2], and the decision would now be [c1, c3]"},
		{name: "fewer clusters", previewed: webBody(2), after: func() { s.decisions.deciding("c1") }, want: "would now be [c1]"},
		{name: "no clusters", previewed: webBody(2), after: func() { s.decisions.deciding() }, want: "would now be []"},
		{name: "same groups", previewed: webBody(3), before: func() { s.decisions.previewing(grouped(2, 1)) }},
		{name: "other groups", previewed: webBody(3), before: func() { s.decisions.previewing(grouped(2, 1)) },
			after: func() { s.decisions.previewing(grouped(1, 2)) }, want: "the fleet changed since the preview"},
	} {
		for _, exists := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, exists: %t", test.name, exists), func(t *testing.T) {
				for _, path := range []string{webPath, "/v1/namespaces/shop/placements/web2", "/v1/namespaces/stock/placements/web"} {
					s.do(http.MethodDelete, path, "")
					if exists {
						s.mustPut(path, `{"spec":{"number_of_clusters":9}}`)
					}
				}
				s.decisions.deciding("c1", "c2")
				if test.before != nil {
					test.before()
				}
				p := s.mustPreview(test.previewed)
				if test.after != nil {
					test.after()
				}
				path, body := webPath, test.previewed
				if test.path != "" {
					path = test.path
				}
				if test.body != "" {
					body = test.body
				}
				a := s.do(http.MethodPut, path, body, api.PreviewTokenHeader, p.Token)
				if test.want == "" {
					if got := decodeAs[api.Placement](t, a); a.StatusCode >= 300 || !slices.Equal(got.Status.Clusters, p.Clusters) {
						t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
					}
					return
				}
				if detail := a.problem(t).Detail; a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(detail, test.want) {
					t.Errorf("got %d %s, want 412 with %q", a.StatusCode, a.body, test.want)
				}
				a = s.do(http.MethodGet, path, "")
				if !exists && a.StatusCode != http.StatusNotFound || exists && *decodeAs[api.Placement](t, a).Spec.NumberOfClusters != 9 {
					t.Errorf("an object was written: %d %s", a.StatusCode, a.body)
				}
			})
		}
	}
	for _, token := range []string{"x", strings.Repeat("0", previewIDDigits), newPreviewID(now.now())} {
		if a := s.do(http.MethodPut, webPath, webBody(7), "Preview-Token", token); a.StatusCode != http.StatusPreconditionFailed ||
			a.problem(t).Detail != "the preview does not exist or has expired: plan again" {
			t.Errorf("token %q: %d %s", token, a.StatusCode, a.body)
		}
	}
	p := s.mustPreview(webBody(2))
	now.advance(api.PreviewLifetime)
	if a := s.do(http.MethodGet, "/v1/previews/"+p.ID, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("GET of an expired preview: got %d, want 404", a.StatusCode)
	}
}

// A token is ignored for a write that changes nothing. Applying a plan twice, or undoing a change of labels, is not an
// error.
func TestPreviewTokenIsIgnoredWhereNothingChanges(t *testing.T) {
	s := startServer(t)
	s.decisions.deciding("c1", "c2")
	p := s.mustPreview(webBody(2))
	first := s.mustPut(webPath, webBody(2), "Preview-Token", p.Token)
	s.decisions.deciding("c3")
	for _, token := range []string{p.Token, "unknown"} {
		a := s.do(http.MethodPut, webPath, webBody(2), "Preview-Token", token)
		if a.StatusCode != http.StatusOK || a.Header.Get("ETag") != first.Header.Get("ETag") {
			t.Errorf("token %q: %d %s", token, a.StatusCode, a.body)
		}
	}
}

// A placement that is created again must not pass for the one before, although
// the same preview made both.
func TestPreviewGivesItsUIDAwayOnce(t *testing.T) {
	s := startServer(t)
	s.decisions.deciding("c1")
	p := s.mustPreview(webBody(1))
	seen := map[string]bool{}
	for round := range 3 {
		got := decodeAs[api.Placement](t, s.mustPut(webPath, webBody(1), "Preview-Token", p.Token))
		if seen[got.Metadata.UID] || !slices.Equal(got.Status.Clusters, []string{"c1"}) {
			t.Errorf("round %d: UID %s occurred before, or wrong clusters %v", round, got.Metadata.UID, got.Status.Clusters)
		}
		seen[got.Metadata.UID] = true
		s.do(http.MethodDelete, webPath, "")
	}
	// A preview of an existing placement must not bring back its UID after it was deleted.
	old := decodeAs[api.Placement](t, s.mustPut(webPath, webBody(1)))
	p = s.mustPreview(webBody(2))
	s.do(http.MethodDelete, webPath, "")
	if got := decodeAs[api.Placement](t, s.mustPut(webPath, webBody(2), "Preview-Token", p.Token)); got.Metadata.UID == old.Metadata.UID {
		t.Error("the new placement has the UID of the deleted one")
	}
}

func TestManyWritersWithOneToken(t *testing.T) {
	s := startServer(t)
	s.decisions.deciding("c1", "c2")
	p := s.mustPreview(webBody(2))
	var createdOnce atomic.Int64
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			a, err := s.try(context.Background(), http.MethodPut, webPath, webBody(2), "Preview-Token", p.Token)
			if err != nil || a.StatusCode >= 300 {
				t.Errorf("error %v, answer %d %s", err, a.StatusCode, a.body)
				return
			}
			if got := decodeAs[api.Placement](t, a); !slices.Equal(got.Status.Clusters, p.Clusters) || got.Metadata.Generation != 1 {
				t.Errorf("unexpected placement %s", a.body)
			}
			if a.StatusCode == http.StatusCreated {
				createdOnce.Add(1)
			}
		})
	}
	running.Wait()
	if createdOnce.Load() != 1 {
		t.Errorf("created %d times", createdOnce.Load())
	}
}

// If a decision is written between the check and the commit, the check is repeated.
func TestPreviewTokenIsCheckedAgainstWhatIsReplaced(t *testing.T) {
	s := startServer(t)
	placement := decodeAs[*api.Placement](t, s.mustPut(webPath, webBody(1)))
	s.decisions.deciding("c1", "c2")
	p := s.mustPreview(webBody(2))
	s.beforeNextCommit(func() {
		placement.Status = decided(placement, "c9")
		s.writeStatus(placement)
		s.decisions.deciding("c9", "c1")
	})
	a := s.do(http.MethodPut, webPath, webBody(2), "Preview-Token", p.Token)
	if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.problem(t).Detail, "would now be [c9, c1]") {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if got := decodeAs[api.Placement](t, s.do(http.MethodGet, webPath, "")); !slices.Equal(got.Status.Clusters, []string{"c9"}) || got.Metadata.Generation != 1 {
		t.Errorf("placement %+v, want it unchanged", got)
	}
}

func (s *testServer) previewsKept() int {
	s.t.Helper()
	revision, err := s.store.Revision(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	snapshot, err := s.fleet.WaitRevision(context.Background(), revision)
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for range snapshot.AllSystem(KindPreview) {
		n++
	}
	return n
}

func TestExpiredPreviewsAreRemoved(t *testing.T) {
	now := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	for range 3 {
		s.mustPreview(webBody(1))
	}
	now.advance(time.Hour)
	s.mustPreview(webBody(1))
	if n := s.previewsKept(); n != 4 {
		t.Fatalf("%d previews stored, want 4", n)
	}
	now.advance(api.PreviewLifetime - time.Hour)
	s.mustPreview(webBody(1)) // removes the expired ones
	if n := s.previewsKept(); n != 2 {
		t.Errorf("%d previews stored, want 2", n)
	}
	now.advance(2 * api.PreviewLifetime)
	s.previews.dropExpiredPreviews(context.Background(), now.now(), 1000)
	if n := s.previewsKept(); n != 0 {
		t.Errorf("%d previews stored after the sweep, want none", n)
	}
}

// fill stores n previews of the given size.
func (s *testServer) fill(n, size int) {
	s.t.Helper()
	for done := 0; done < n; {
		var writes []store.Write
		for range min(100, n-done) {
			writes = append(writes, store.Write{Key: previewKey(newPreviewID(s.previews.now())), Part: store.Spec, Value: make([]byte, size)})
			done++
		}
		if _, err := s.store.Commit(context.Background(), writes...); err != nil {
			s.t.Fatal(err)
		}
	}
	s.previewsKept()
}

func TestPreviewsAreLimited(t *testing.T) {
	now := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	const most = 1000
	s := startServer(t, func(o *Options) { o.Now, o.MaxPreviews = now.now, most })
	s.fill(most-1, 1)
	s.mustPreview(webBody(1))
	s.previewsKept()
	a := s.do(http.MethodPost, "/v1/previews", webBody(1))
	if detail := a.problem(t).Detail; a.StatusCode != http.StatusTooManyRequests || !strings.Contains(detail, "the limits are 1000 and 256 MiB") ||
		!strings.Contains(detail, "the next at 2030-01-02T00:00:00Z") {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	now.advance(api.PreviewLifetime)
	s.mustPreview(webBody(1))
	// A POST removes a few. The sweep removes all of them, in more than one transaction.
	if n := s.previewsKept(); n != most-previewBatch+1 {
		t.Errorf("%d previews stored after one removal", n)
	}
	s.previews.dropExpiredPreviews(context.Background(), now.now(), most)
	if n := s.previewsKept(); n != 1 {
		t.Errorf("%d previews stored after the sweep, want 1", n)
	}
}

func TestLargePreviewsAreKeptWhole(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("cluster-%05d", i))
	}
	s.decisions.deciding(names...)
	p := s.mustPreview(`{"metadata":{"namespace":"shop","name":"web"},"spec":{}}`)
	a := s.do(http.MethodPut, webPath, `{"spec":{}}`, "Preview-Token", p.Token)
	if got := decodeAs[api.Placement](t, a); a.StatusCode != http.StatusCreated || !slices.Equal(got.Status.Clusters, names) {
		t.Errorf("got %d with %d clusters", a.StatusCode, len(got.Status.Clusters))
	}
}
