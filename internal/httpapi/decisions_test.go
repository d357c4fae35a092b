package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// placed stores a placement with a decision.
func (s *testServer) placed(namespace, name string, minute int, satisfied api.ConditionStatus, clusters ...string) {
	s.t.Helper()
	wanted := int64(2)
	s.mustPut("/v1/namespaces/"+namespace+"/placements/"+name, fmt.Sprintf(`{"metadata":{"labels":{"team":"%s"}},"spec":{"number_of_clusters":%d}}`, namespace, wanted))
	at := time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC)
	placement := &api.Placement{Metadata: api.Metadata{Namespace: namespace, Name: name}}
	placement.Status = api.PlacementStatus{Clusters: clusters, ScheduledAt: &at, DecisionRevision: 1}
	if satisfied != api.ConditionUnknown {
		api.SetCondition(&placement.Status.Conditions, api.Condition{Type: api.ConditionSatisfied, Status: satisfied, Reason: "R", Message: "because"}, at)
	}
	s.writeStatus(placement)
}

func (l *decisionsAnswer) names() string {
	var names []string
	for _, row := range l.Items {
		names = append(names, row.Path())
	}
	return strings.Join(names, " ")
}

type decisionsAnswer struct{ api.DecisionList }

func TestDecisionsAreSortedAndFiltered(t *testing.T) {
	s := startServer(t)
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("c%d", i)
	}
	s.placed("shop", "web", 3, api.ConditionTrue, "eu-1", "eu-2")
	s.placed("shop", "db", 1, api.ConditionFalse, "eu-1")
	s.placed("ads", "web", 2, api.ConditionTrue, many...)
	s.placed("ads", "new", 0, api.ConditionUnknown)
	s.mustPut("/v1/namespaces/shop/workloads/api", `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":5}}`)
	workload := &api.Workload{Metadata: api.Metadata{Namespace: "shop", Name: "api"}}
	workload.Status.Clusters = []api.WorkloadCluster{{Name: "eu-2", Replicas: 5}}
	workload.Status.Policy = "shop/all"
	api.SetCondition(&workload.Status.Conditions, api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue}, time.Now())
	s.writeStatus(workload)

	for _, test := range []struct {
		query, want        string
		total, unsatisfied int
	}{
		{"", "ads/new ads/web shop/api shop/db shop/web", 5, 1},
		{"sort=-name", "shop/web shop/db shop/api ads/web ads/new", 5, 1},
		{"sort=-scheduled_at", "shop/web ads/web shop/db ads/new shop/api", 5, 1},
		{"sort=satisfied", "shop/db ads/new ads/web shop/api shop/web", 5, 1},
		{"sort=-clusters&limit=2", "ads/web shop/web", 5, 1},
		{"sort=-clusters&limit=2&offset=1", "shop/web shop/api", 5, 1},
		{"offset=99", "", 5, 1},
		{"search=we", "ads/web shop/web", 2, 0},
		{"search=shop/", "shop/api shop/db shop/web", 3, 1},
		{"namespace=ads", "ads/new ads/web", 2, 0},
		{"satisfied=False", "shop/db", 1, 1},
		{"satisfied=Unknown", "ads/new", 1, 0},
		{"cluster=eu-2", "shop/api shop/web", 2, 0},
		{"kinds=workload", "shop/api", 1, 0},
		{"label_selector=team=shop", "shop/db shop/web", 2, 1},
	} {
		list := decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?"+test.query, ""))
		if got := list.names(); got != test.want || list.Total != test.total || list.Unsatisfied != test.unsatisfied {
			t.Errorf("%s: %s (%d, %d unsatisfied), want %s (%d, %d)", test.query, got, list.Total, list.Unsatisfied, test.want, test.total, test.unsatisfied)
		}
	}
	rows := decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?search=ads/web", "")).Items
	if row := rows[0]; len(row.Clusters) != 8 || row.ClusterCount != 12 || *row.Wanted != 2 || row.Message != "because" || row.Kind != api.KindPlacement || row.ResourceVersion == "" {
		t.Errorf("row %+v", row)
	}
	rows = decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?kinds=workload", "")).Items
	if row := rows[0]; *row.Replicas != 5 || row.Policy != "shop/all" || row.Satisfied != api.ConditionTrue {
		t.Errorf("row %+v", row)
	}
	for query, want := range map[string]string{
		"count_by=namespace":                 "shop 3/1 ads 2/0",
		"count_by=kind":                      "placement 4/1 workload 1/0",
		"count_by=cluster&search=shop":       "eu-1 2/1 eu-2 2/0",
		"count_by=label:team":                "ads 2/0 shop 2/1",
		"count_by=label:none":                "",
		"count_by=namespace&satisfied=False": "shop 1/1",
	} {
		list := decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?"+query, ""))
		var groups []string
		for _, g := range list.Groups {
			groups = append(groups, fmt.Sprintf("%s %d/%d", g.Value, g.Total, g.Unsatisfied))
		}
		if got := strings.Join(groups, " "); got != want || list.GroupsLeftOut != 0 {
			t.Errorf("%s: %s (%d left out), want %s", query, got, list.GroupsLeftOut, want)
		}
	}
	for _, query := range []string{"count_by=color", "count_by=label:", "sort=color", "satisfied=maybe", "kinds=cluster", "limit=0", "limit=501", "offset=-1", "label_selector=a%20b", "page=1"} {
		if a := s.do(http.MethodGet, "/v1/decisions?"+query, ""); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d, want 422", query, a.StatusCode)
		}
	}
}

// Lists may be read by many while decisions are written; each shows one revision.
func TestDecisionsWhileTheyAreWritten(t *testing.T) {
	s := startServer(t)
	s.placed("shop", "first", 1, api.ConditionTrue, "eu-1")
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for last := 0; ; {
				a, err := s.try(t.Context(), http.MethodGet, "/v1/decisions?count_by=cluster&label_selector=team=shop&sort=-name", "")
				var list decisionsAnswer
				if err == nil {
					err = json.Unmarshal(a.body, &list)
				}
				if err != nil || list.Total < last || len(list.Items) != list.Total {
					t.Errorf("%d of %d rows, before %d; %v", len(list.Items), list.Total, last, err)
				}
				last = list.Total
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 50 {
		s.placed("shop", fmt.Sprintf("web-%d", i), 2, api.ConditionTrue, "eu-2")
	}
	close(done)
	readers.Wait()
	if total := decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions", "")).Total; total != 51 {
		t.Errorf("%d decisions, want 51", total)
	}
}

// Who may read one namespace gets its decisions, and learns nothing about others, not even their number.
func TestDecisionsOfANamespace(t *testing.T) {
	s := startServer(t)
	s.placed("shop", "web", 1, api.ConditionTrue, "eu-1")
	s.placed("vault", "gold", 1, api.ConditionFalse, "eu-1")
	s.token = s.addToken(auth.RoleViewer, "shop")
	if groups := decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?count_by=namespace", "")).Groups; len(groups) != 1 || groups[0].Value != "shop" {
		t.Errorf("groups %+v, want shop alone", groups)
	}
	for query, want := range map[string]string{"": "shop/web", "search=gold": "", "cluster=eu-1": "shop/web", "namespace=shop": "shop/web"} {
		list := decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?"+query, ""))
		if list.names() != want || list.Total != len(list.Items) || list.Unsatisfied != 0 {
			t.Errorf("%s: %+v, want %s", query, list, want)
		}
	}
	if a := s.do(http.MethodGet, "/v1/decisions?namespace=vault", ""); a.StatusCode != http.StatusForbidden {
		t.Errorf("another namespace: %d, want 403", a.StatusCode)
	}
}

// An event says where a decision was before, and only if it changed.
func TestEventsSayWhereADecisionWas(t *testing.T) {
	s := startServer(t)
	w := s.watch("/v1/watch?kinds=placement")
	for i, step := range []struct {
		clusters []string
		from     string // "" = the decision did not change
	}{
		{[]string{"eu-1"}, "[]"}, {[]string{"eu-2", "eu-1"}, "[eu-1]"}, {[]string{"eu-2", "eu-1"}, ""}, {[]string{"eu-1", "eu-2"}, "[eu-2 eu-1]"},
	} {
		// Each change is read before the next one: several changes at once are one event.
		s.placed("shop", "web", i, api.ConditionTrue, step.clusters...)
		at := time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC).Format(time.RFC3339)
		for {
			e, ok := w.next()
			if !ok {
				t.Fatal("the watch ended")
			}
			got := ""
			if e.data.From != nil {
				got = fmt.Sprint(e.data.From.Clusters)
			}
			if e.data.Object.Status["scheduled_at"] != at {
				if got != "" {
					t.Errorf("a write of the spec moved from %s", got)
				}
				continue
			}
			if got != step.from {
				t.Errorf("%v: moved from %q, want from %q", step.clusters, got, step.from)
			}
			break
		}
	}
}
