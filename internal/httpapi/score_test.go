package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

const scores = `{"spec":{"scores":{"cpu":50}}}`

func TestScoresBelongToTheClusterOfThePath(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/c1", `{"spec":{}}`)
	path := "/v1/clusters/c1/placement-scores/load"
	tests := []struct {
		name, path, body string
		status           int
		field, detail    string
	}{
		{"no cluster in the body", path, scores, 201, "", ""},
		{"same cluster in the body", path, `{"metadata":{"name":"load","cluster":"c1"},"spec":{"scores":{"cpu":50}}}`, 200, "", ""},
		{"cluster as the namespace, as in Open Cluster Management", path, `{"metadata":{"namespace":"c1"},"spec":{"scores":{"cpu":50}}}`, 200, "", ""},
		{"other cluster in the body", path, `{"metadata":{"cluster":"c2"},"spec":{"scores":{"cpu":50}}}`, 422, "metadata.cluster", ""},
		{"other namespace in the body", path, `{"metadata":{"namespace":"c2"},"spec":{"scores":{"cpu":50}}}`, 422, "metadata.cluster", ""},
		{"cluster and namespace in the body", path, `{"metadata":{"cluster":"c1","namespace":"shop"},"spec":{"scores":{"cpu":50}}}`, 422, "metadata.namespace", ""},
		{"other name in the body", path, `{"metadata":{"name":"other"},"spec":{"scores":{"cpu":50}}}`, 422, "metadata.name", ""},
		{"unknown cluster", "/v1/clusters/c9/placement-scores/load", scores, 404, "", `cluster "c9" does not exist: create it before its placement-scores`},
		{"no scores", path, `{"spec":{}}`, 422, "spec.scores", ""},
		{"unknown field", path, `{"spec":{"scores":{},"score":1}}`, 422, "spec.score", ""},
		{"too high", path, `{"spec":{"scores":{"cpu":101}}}`, 422, `spec.scores["cpu"]`, ""},
		{"too low", path, `{"spec":{"scores":{"cpu":-101}}}`, 422, `spec.scores["cpu"]`, ""},
		{"larger than any integer", path, `{"spec":{"scores":{"cpu":9223372036854775808}}}`, 422, "", ""},
		{"fraction", path, `{"spec":{"scores":{"cpu":1.5}}}`, 422, "", ""},
		{"invalid name of a score", path, `{"spec":{"scores":{"a b":1}}}`, 422, `spec.scores["a b"]`, ""},
		{"invalid time", path, `{"spec":{"scores":{},"valid_until":"soon"}}`, 422, "spec.valid_until", ""},
		{"invalid name in the path", "/v1/clusters/c1/placement-scores/A_B", scores, 422, "metadata.name", ""},
		{"invalid cluster in the path", "/v1/clusters/A_B/placement-scores/load", scores, 422, "metadata.cluster", ""},
		{"path traversal in the cluster", "/v1/clusters/..%2f..%2fx/placement-scores/load", scores, 422, "metadata.cluster", ""},
		{"preview token", path + "?preview_token=x", scores, 422, "preview_token", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := s.do(http.MethodPut, test.path, test.body)
			if a.StatusCode != test.status {
				t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, test.status)
			}
			if a.StatusCode < 300 {
				if got := decodeAs[api.PlacementScore](t, a); got.Metadata.Cluster != "c1" || got.Metadata.Namespace != "" || got.Metadata.Name != "load" || got.Spec.Scores["cpu"] != 50 {
					t.Errorf("unexpected score %s", a.body)
				}
				return
			}
			p := a.problem(t)
			found := test.field == ""
			for _, e := range p.Errors {
				found = found || e.Field == test.field
			}
			if !found || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("got %s, want field %q and detail %q", a.body, test.field, test.detail)
			}
		})
	}
	for _, path := range []string{"/v1/placement-scores/load", "/v1/namespaces/c1/placement-scores"} {
		if a := s.do(http.MethodGet, path, ""); a.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, a.StatusCode)
		}
	}
	if a := s.do(http.MethodPut, "/v1/clusters/c2", `{"metadata":{"cluster":"c1"},"spec":{}}`); a.StatusCode != 422 {
		t.Errorf("cluster in the metadata of a cluster: got %d %s, want 422", a.StatusCode, a.body)
	}
}

func TestScoresAreShownWithTheStatusOfTheMoment(t *testing.T) {
	now := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	s.mustPut("/v1/clusters/c1", `{"spec":{}}`)
	path := "/v1/clusters/c1/placement-scores/load"
	body := `{"spec":{"scores":{"cpu":50},"valid_until":"2030-01-01T00:01:00Z"}}`
	reason := func(object map[string]any) string {
		conditions, _ := object["conditions"].([]any)
		if len(conditions) != 1 {
			t.Fatalf("status of %v, want one condition", object)
		}
		return conditions[0].(map[string]any)["reason"].(string)
	}
	etag := ""
	watch := s.watch("/v1/watch?kinds=placement_score").started()
	for _, want := range []string{"Valid", "Expired"} {
		a := s.mustPut(path, body)
		if got := reason(decodeAs[anyObject](t, a).Status); got != want {
			t.Errorf("PUT shows %s, want %s", got, want)
		}
		// The status changes without a new version, so that the response is never "not modified".
		a = s.do(http.MethodGet, path, "", "If-None-Match", etag)
		if a.StatusCode != 200 || reason(decodeAs[anyObject](t, a).Status) != want {
			t.Errorf("GET: got %d %s, want %s", a.StatusCode, a.body, want)
		}
		etag = a.Header.Get("ETag")
		for _, list := range []string{"/v1/placement-scores", "/v1/placement-scores?limit=1", "/v1/clusters/c1/placement-scores"} {
			items := decodeAs[objectList](t, s.do(http.MethodGet, list, "")).Items
			if len(items) != 1 || reason(items[0].Status) != want {
				t.Errorf("%s shows %+v, want %s", list, items, want)
			}
		}
		now.advance(61 * time.Second)
	}
	s.mustPut(path, `{"spec":{"scores":{"cpu":51},"valid_until":"2030-01-01T00:01:00Z"}}`)
	events := watch.expect("put load", "put load")
	if reason(events[1].data.Object.Status) != "Expired" {
		t.Errorf("the watch shows %+v, want it as expired", events[1].data.Object)
	}
}

func TestListsOfScores(t *testing.T) {
	s := startServer(t)
	for _, cluster := range []string{"c1", "c10", "c2"} {
		s.mustPut("/v1/clusters/"+cluster, `{"spec":{}}`)
		for _, name := range []string{"a", "b"} {
			s.mustPut("/v1/clusters/"+cluster+"/placement-scores/"+name, `{"metadata":{"labels":{"of":"`+name+`"}},"spec":{"scores":{"x":1}}}`)
		}
	}
	for _, test := range []struct{ path, want string }{
		{"/v1/placement-scores?", "c1/a c1/b c10/a c10/b c2/a c2/b"},
		{"/v1/placement-scores?limit=4&", "c1/a c1/b c10/a c10/b c2/a c2/b"},
		{"/v1/placement-scores?label_selector=of%3Db&", "c1/b c10/b c2/b"},
		{"/v1/placement-scores?limit=1&label_selector=of%3Db&", "c1/b c10/b c2/b"},
		{"/v1/clusters/c1/placement-scores?", "c1/a c1/b"},
		{"/v1/clusters/c1/placement-scores?limit=1&", "c1/a c1/b"},
		{"/v1/clusters/nothing/placement-scores?", ""},
	} {
		var got []string
		for next := ""; ; {
			a := s.do(http.MethodGet, test.path+"continue="+next, "")
			if a.StatusCode != http.StatusOK {
				t.Fatalf("%s: got %d %s, want 200", test.path, a.StatusCode, a.body)
			}
			page := decodeAs[api.List[*api.PlacementScore]](t, a)
			for i := range page.Items {
				got = append(got, api.KeyOf(page.Items[i]).Path())
			}
			if next = page.Continue; next == "" {
				break
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s shows %q, want %q", test.path, got, test.want)
		}
	}
}

func TestPermissionsOnScores(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) { o.LoginFailureBurst = 1000 })
	tokens := map[string]string{
		"admin": s.addToken(auth.RoleAdmin), "editor": s.addToken(auth.RoleEditor), "viewer": s.addToken(auth.RoleViewer), "agent": s.addToken(auth.RoleAgent),
		"shop editor": s.addToken(auth.RoleEditor, "shop"), "shop viewer": s.addToken(auth.RoleViewer, "shop"), "shop agent": s.addToken(auth.RoleAgent, "shop"), "nobody": "",
	}
	s.token = tokens["admin"]
	for cluster, spec := range map[string]string{"shared": `{}`, "shops": `{"namespace":"shop"}`, "others": `{"namespace":"other"}`} {
		s.mustPut("/v1/clusters/"+cluster, `{"spec":`+spec+`}`)
		s.mustPut("/v1/clusters/"+cluster+"/placement-scores/load", scores)
	}
	const no, unknown = http.StatusForbidden, http.StatusUnauthorized
	everybody := []string{"admin", "editor", "viewer", "agent", "shop editor", "shop viewer", "shop agent", "nobody"}
	of := func(cluster string) string { return "/v1/clusters/" + cluster + "/placement-scores" }
	for _, test := range []struct {
		method, path string
		want         []int // statuses in the order of the tokens
	}{
		{"GET", of("shared") + "/load", []int{200, 200, 200, 200, 200, 200, no, unknown}},
		{"GET", of("shops") + "/load", []int{200, 200, 200, 200, 200, 200, 200, unknown}},
		{"GET", of("others") + "/load", []int{200, 200, 200, 200, no, no, no, unknown}},
		{"GET", of("others") + "/nothing", []int{404, 404, 404, 404, no, no, no, unknown}},
		{"GET", of("shops"), []int{200, 200, 200, 200, 200, 200, 200, unknown}},
		{"GET", of("others"), []int{200, 200, 200, 200, no, no, no, unknown}},
		{"GET", "/v1/placement-scores", []int{200, 200, 200, 200, 200, 200, 200, unknown}},
		{"PUT", of("shared") + "/new", []int{201, 200, no, 200, no, no, no, unknown}},
		{"PUT", of("shops") + "/new", []int{201, 200, no, 200, 200, no, 200, unknown}},
		{"PUT", of("others") + "/new", []int{201, 200, no, 200, no, no, no, unknown}},
		{"PUT", of("nothing") + "/new", []int{404, 404, no, 404, 404, no, 404, unknown}},
		{"DELETE", of("shared") + "/none", []int{404, 404, no, 404, no, no, no, unknown}},
		{"DELETE", of("shops") + "/none", []int{404, 404, no, 404, 404, no, 404, unknown}},
		{"DELETE", of("others") + "/none", []int{404, 404, no, 404, no, no, no, unknown}},
		{"DELETE", of("nothing") + "/none", []int{404, 404, no, 404, 404, no, 404, unknown}},
		// What agents still may not do.
		{"GET", "/v1/cluster-sets", []int{200, 200, 200, no, 200, 200, no, unknown}},
		{"PUT", "/v1/cluster-sets/eu", []int{422, 422, 422, 422, 422, 422, 422, unknown}},
		{"POST", "/v1/previews", []int{201, 201, 201, no, 201, 201, no, unknown}},
		{"GET", "/v1/watch?kinds=nothing", []int{422, 422, 422, no, 422, 422, no, unknown}},
	} {
		for i, who := range everybody {
			s.token = tokens[who]
			body := ""
			switch test.method {
			case "PUT":
				body = scores
			case "POST":
				body = `{"metadata":{"namespace":"shop","name":"web"},"spec":{}}`
			}
			if a := s.do(test.method, test.path, body); a.StatusCode != test.want[i] {
				t.Errorf("%s: %s %s: got %d %s, want %d", who, test.method, test.path, a.StatusCode, a.body, test.want[i])
			}
		}
	}
	for who, want := range map[string]string{
		"admin": "others/load others/new shared/load shared/new shops/load shops/new", "shop viewer": "shared/load shared/new shops/load shops/new", "shop agent": "shops/load shops/new",
	} {
		s.token = tokens[who]
		for _, path := range []string{"/v1/placement-scores", "/v1/placement-scores?limit=1000"} {
			var got []string
			list := decodeAs[api.List[*api.PlacementScore]](t, s.do(http.MethodGet, path, ""))
			for i := range list.Items {
				got = append(got, api.KeyOf(list.Items[i]).Path())
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s sees %q, want %q", who, got, want)
			}
		}
	}

	// A reader of one namespace only gets the scores of its clusters, including their deletion.
	s.token = tokens["shop viewer"]
	watch := s.watch("/v1/watch?kinds=placement_score").started()
	s.token = tokens["admin"]
	for _, cluster := range []string{"others", "shops"} {
		s.mustPut(of(cluster)+"/load", `{"spec":{"scores":{"cpu":7}}}`)
		s.do(http.MethodDelete, "/v1/clusters/"+cluster, "")
	}
	for _, want := range []string{"put load", "delete load", "delete new"} {
		if e, ok := watch.next(); !ok || e.String() != want || e.data.Object.Metadata.Cluster != "shops" {
			t.Errorf("got %+v, want %s of shops", e, want)
		}
	}
}

// A watch that lags behind receives the changes to the scores of a cluster that has since been deleted.
func TestLateWatchShowsScoresOfADeletedCluster(t *testing.T) {
	s := startServer(t, authenticated)
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	start := s.mustPut("/v1/clusters/shops", `{"spec":{"namespace":"shop"}}`)
	s.mustPut("/v1/clusters/shops/placement-scores/load", `{"spec":{"scores":{"cpu":7}}}`)
	s.do(http.MethodDelete, "/v1/clusters/shops", "")
	s.token = viewer
	watch := s.watch("/v1/watch?kinds=placement_score&resource_version=" + strings.Trim(start.Header.Get("ETag"), `"`)).started()
	watch.expect("put load", "delete load")
}

func TestScoresGoWithTheirCluster(t *testing.T) {
	s := startServer(t)
	for _, cluster := range []string{"c1", "c10"} {
		s.mustPut("/v1/clusters/"+cluster, `{"spec":{}}`)
		for i := range 5 {
			s.mustPut(fmt.Sprintf("/v1/clusters/%s/placement-scores/s%d", cluster, i), scores)
		}
	}
	if a := s.do(http.MethodDelete, "/v1/clusters/c1", ""); a.StatusCode != http.StatusNoContent {
		t.Fatalf("got %d %s, want 204", a.StatusCode, a.body)
	}
	if left := decodeAs[objectList](t, s.do(http.MethodGet, "/v1/placement-scores", "")).Items; len(left) != 5 {
		t.Errorf("%d scores are left, want those of the other cluster, 5", len(left))
	}
	s.mustPut("/v1/clusters/c1", `{"spec":{}}`)
	if left := decodeAs[objectList](t, s.do(http.MethodGet, "/v1/clusters/c1/placement-scores", "")).Items; len(left) != 0 {
		t.Errorf("the new cluster has the scores of the deleted one: %+v", left)
	}
}

// If an agent writes a score while its cluster is deleted, either the score is written first and deleted with the
// cluster, or the write fails because there is no such cluster.
func TestScoresAreDeletedWithTheirCluster(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for round := range 20 {
		cluster := fmt.Sprintf("/v1/clusters/c%d", round)
		s.mustPut(cluster, `{"spec":{}}`)
		var running sync.WaitGroup
		for agent := range 8 {
			running.Go(func() {
				for i := range 10 {
					a, err := s.try(context.Background(), http.MethodPut, fmt.Sprintf("%s/placement-scores/s%d", cluster, agent),
						fmt.Sprintf(`{"spec":{"scores":{"cpu":%d}}}`, i))
					if err != nil || a.StatusCode >= 300 && a.StatusCode != http.StatusNotFound {
						t.Errorf("error %v, answer %d %s", err, a.StatusCode, a.body)
					}
				}
			})
		}
		running.Go(func() {
			if a, err := s.try(context.Background(), http.MethodDelete, cluster, ""); err != nil || a.StatusCode != http.StatusNoContent {
				t.Errorf("error %v, answer %d %s", err, a.StatusCode, a.body)
			}
		})
		running.Wait()
	}
	revision, err := s.store.Revision(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fleet.WaitRevision(context.Background(), revision); err != nil {
		t.Fatal(err)
	}
	for entry := range s.fleet.Snapshot().All(api.KindPlacementScore, "") {
		t.Errorf("%s still exists", api.KeyOf(entry.Object))
	}
}

// If the cluster is replaced between the check and the write of a score, access is checked again for the new cluster.
func TestTheScoreIsWrittenForTheClusterThatWasChecked(t *testing.T) {
	s := startServer(t, authenticated)
	admin, agent := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleAgent, "shop")
	s.token = admin
	s.mustPut("/v1/clusters/c1", `{"spec":{"namespace":"shop"}}`)
	s.token = agent
	s.mustPut("/v1/clusters/c1/placement-scores/load", scores)
	// Write directly to the store, so that the server's fleet may still show the old cluster when the agent writes.
	object := s.fleet.Snapshot().Get(auth.ClusterKey("c1")).Object.Copy().(*api.Cluster)
	object.Spec.Namespace = "other"
	value, err := s.codec.EncodeSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	key := api.Key{Kind: api.KindPlacementScore, Namespace: "c1", Name: "load"}
	s.beforeNextCommit(func() {
		s.commitPast(auth.ClusterKey("c1"), value)
	})
	if a := s.do(http.MethodPut, key.URLPath(), `{"spec":{"scores":{"cpu":-1}}}`); a.StatusCode != http.StatusForbidden {
		t.Errorf("got %d %s, want 403", a.StatusCode, a.body)
	}
	s.token = admin
	if got := decodeAs[api.PlacementScore](t, s.do(http.MethodGet, key.URLPath(), "")); got.Spec.Scores["cpu"] != 50 {
		t.Errorf("the score was written: %+v", got.Spec)
	}
}

func TestScoreWritesWaitForTheirDecisions(t *testing.T) {
	now := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	s.mustPut("/v1/clusters/c1", `{"spec":{}}`)
	until := func(score int, minute int) string {
		return fmt.Sprintf(`{"spec":{"scores":{"cpu":%d},"valid_until":"2030-01-01T00:%02d:00Z"}}`, score, minute)
	}
	for _, test := range []struct {
		name, body string
		advance    time.Duration
		waits      bool
	}{
		{"created", until(1, 5), 0, true},
		{"postponed", until(1, 6), 0, false},
		{"other score", until(2, 6), 0, true},
		{"postponed after its expiry", until(2, 20), 10 * time.Minute, true},
		{"ended", until(2, 1), 0, true},
		{"without expiry", `{"spec":{"scores":{"cpu":2}}}`, 0, true},
		{"with an expiry again", until(2, 50), 0, false},
	} {
		now.advance(test.advance)
		s.decisions.mu.Lock()
		s.decisions.settled = nil
		s.decisions.mu.Unlock()
		s.mustPut("/v1/clusters/c1/placement-scores/load", test.body)
		s.decisions.mu.Lock()
		if waits := len(s.decisions.settled) > 0; waits != test.waits {
			t.Errorf("%s: waits = %t, want %t", test.name, waits, test.waits)
		}
		s.decisions.mu.Unlock()
	}
}
