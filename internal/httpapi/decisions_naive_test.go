package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// naiveDecision is a decision as a test wrote it.
type naiveDecision struct {
	kind, namespace, name string
	labels                map[string]string
	chosen, leaving       []string
	minute                int // 0: never decided
	satisfied             api.ConditionStatus
}

func (d naiveDecision) path() string { return d.namespace + "/" + d.name }

var naiveNames = []string{"a", "a-b", "ab", "b"}

func drawNaive(t *rapid.T) naiveDecision {
	d := naiveDecision{
		kind:      rapid.SampledFrom([]string{"placement", "workload"}).Draw(t, "kind"),
		namespace: rapid.SampledFrom(naiveNames).Draw(t, "namespace"), name: rapid.SampledFrom(naiveNames).Draw(t, "name"),
		labels:    map[string]string{},
		chosen:    rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c1", "c2", "c3"}), 0, 3, rapid.ID).Draw(t, "chosen"),
		minute:    rapid.IntRange(0, 3).Draw(t, "minute"),
		satisfied: rapid.SampledFrom([]api.ConditionStatus{api.ConditionTrue, api.ConditionFalse, api.ConditionUnknown}).Draw(t, "satisfied"),
	}
	if team := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "team"); team != "" {
		d.labels["team"] = team
	}
	if d.kind == "workload" {
		slices.Sort(d.chosen) // as the server keeps them
		d.leaving = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c3", "c4"}), 0, 2, rapid.ID).Draw(t, "leaving")
	}
	return d
}

// write stores a decision.
func (d naiveDecision) write(s *testServer) {
	at := time.Date(2026, 3, 1, 12, d.minute, 0, 0, time.UTC)
	meta := api.Metadata{Namespace: d.namespace, Name: d.name}
	spec := `{}`
	condition := api.Condition{Type: api.ConditionSatisfied, Status: d.satisfied, Reason: "R"}
	var object api.Object
	if d.kind == "placement" {
		p := &api.Placement{Metadata: meta}
		p.Status.Clusters = d.chosen
		if d.minute > 0 {
			p.Status.ScheduledAt = &at
		}
		p.Status.Conditions = []api.Condition{condition}
		object = p
	} else {
		spec = `{"api_version":"apps/v1","kind":"Deployment","replicas":5}`
		w := &api.Workload{Metadata: meta}
		for _, cluster := range d.chosen {
			w.Status.Clusters = append(w.Status.Clusters, api.WorkloadCluster{Name: cluster, Replicas: 1})
		}
		for _, cluster := range d.leaving {
			w.Status.Evictions = append(w.Status.Evictions, api.Eviction{Cluster: cluster, Replicas: 1, PurgeMode: api.PurgeGracefully})
		}
		if d.minute > 0 {
			w.Status.ScheduledAt = &at
		}
		condition.Type = api.ConditionScheduled
		w.Status.Conditions = []api.Condition{condition}
		object = w
	}
	s.mustPut("/v1/namespaces/"+d.namespace+"/"+d.kind+"s/"+d.name, fmt.Sprintf(`{"metadata":{"labels":%s},"spec":%s}`, encoded(s.t, d.labels), spec))
	s.writeStatus(object)
}

// encoded returns a value as JSON.
func encoded(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// naiveList answers a list in the plainest way.
func naiveList(all map[string]naiveDecision, q url.Values) (rows []string, total, unsatisfied int, groups []string) {
	var selected []naiveDecision
	for _, d := range all {
		switch {
		case q.Get("kinds") != "" && q.Get("kinds") != d.kind:
		case q.Get("namespace") != "" && q.Get("namespace") != d.namespace:
		case !strings.Contains(d.path(), q.Get("search")):
		case q.Get("cluster") != "" && !slices.Contains(append(slices.Clone(d.chosen), d.leaving...), q.Get("cluster")):
		case q.Get("satisfied") != "" && q.Get("satisfied") != string(d.satisfied):
		case q.Get("label_selector") != "" && d.labels["team"] != "x":
		default:
			selected = append(selected, d)
		}
	}
	slices.SortFunc(selected, func(a, b naiveDecision) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	})
	by, reversed := strings.CutPrefix(q.Get("sort"), "-")
	value := map[string]func(d naiveDecision) int{
		"scheduled_at": func(d naiveDecision) int { return d.minute }, "clusters": func(d naiveDecision) int { return len(d.chosen) },
		"satisfied": func(d naiveDecision) int {
			return slices.Index([]api.ConditionStatus{api.ConditionFalse, api.ConditionUnknown, api.ConditionTrue}, d.satisfied)
		},
	}[by]
	switch {
	case value == nil && reversed:
		slices.Reverse(selected)
	case value != nil:
		slices.SortStableFunc(selected, func(a, b naiveDecision) int {
			if reversed {
				a, b = b, a
			}
			return cmp.Compare(value(a), value(b))
		})
	}
	counts := map[string][2]int{}
	for _, d := range selected {
		rows = append(rows, d.kind+" "+d.path())
		isOff := 0
		if d.satisfied == api.ConditionFalse {
			isOff = 1
		}
		unsatisfied += isOff
		in := map[string][]string{"namespace": {d.namespace}, "kind": {d.kind}, "cluster": d.chosen}[q.Get("count_by")]
		if team, ok := d.labels["team"]; ok && q.Get("count_by") == "label:team" {
			in = []string{team}
		}
		for _, group := range in {
			counts[group] = [2]int{counts[group][0] + 1, counts[group][1] + isOff}
		}
	}
	for _, group := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b][0], counts[a][0]), cmp.Compare(a, b))
	}) {
		groups = append(groups, fmt.Sprint(group, counts[group]))
	}
	return rows, len(rows), unsatisfied, groups
}

// TestDecisionsEqualNaiveLists compares lists, while decisions are written and deleted, with lists made in the plainest way.
func TestDecisionsEqualNaiveLists(t *testing.T) {
	s := startServer(t)
	all := map[string]naiveDecision{}
	some := func(t *rapid.T, name string, values ...string) string {
		return rapid.SampledFrom(append([]string{"", ""}, values...)).Draw(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			d := drawNaive(t)
			id := d.kind + " " + d.path()
			if _, known := all[id]; known && rapid.Bool().Draw(t, "delete") {
				delete(all, id)
				if a := s.do(http.MethodDelete, "/v1/namespaces/"+d.namespace+"/"+d.kind+"s/"+d.name, ""); a.StatusCode >= 300 {
					t.Fatalf("delete %s: %d %s", id, a.StatusCode, a.body)
				}
				continue
			}
			all[id] = d
			d.write(s)
		}
		q := url.Values{}
		for _, p := range []struct {
			name   string
			values []string
		}{
			{"kinds", []string{"placement", "workload"}}, {"namespace", append([]string{"none"}, naiveNames...)},
			{"search", []string{"b", "/a", "-b/", "a/a", "ab/ab", "none"}}, {"cluster", []string{"c1", "c3", "c4", "none"}},
			{"satisfied", []string{"True", "False", "Unknown"}}, {"label_selector", []string{"team=x"}},
			{"sort", []string{"name", "-name", "scheduled_at", "-scheduled_at", "clusters", "-clusters", "satisfied", "-satisfied"}},
			{"count_by", []string{"namespace", "kind", "cluster", "label:team", "label:none"}},
		} {
			if value := some(t, p.name, p.values...); value != "" {
				q.Set(p.name, value)
			}
		}
		rows, total, unsatisfied, groups := naiveList(all, q)
		from := rapid.IntRange(0, 8).Draw(t, "offset")
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		q.Set("offset", fmt.Sprint(from))
		q.Set("limit", fmt.Sprint(limit))
		rows = rows[min(from, len(rows)):min(from+limit, len(rows))]
		got := decodeAs[decisionsAnswer](s.t, s.do(http.MethodGet, "/v1/decisions?"+q.Encode(), ""))
		var gotRows, gotGroups []string
		for _, row := range got.Items {
			gotRows = append(gotRows, string(row.Kind)+" "+row.Path())
		}
		for _, g := range got.Groups {
			gotGroups = append(gotGroups, fmt.Sprint(g.Value, [2]int{g.Total, g.Unsatisfied}))
		}
		if !slices.Equal(gotRows, rows) || got.Total != total || got.Unsatisfied != unsatisfied || !slices.Equal(gotGroups, groups) {
			t.Fatalf("%s:\n%v, %d (%d), %v, want\n%v, %d (%d), %v", q.Encode(), gotRows, got.Total, got.Unsatisfied, gotGroups, rows, total, unsatisfied, groups)
		}
	})
}
