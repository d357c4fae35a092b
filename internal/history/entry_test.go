package history

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestRecordsOfEarlierVersions decodes records as earlier versions have written them. Do not change these files: servers have
// written such records. Add one when the form changes.
func TestRecordsOfEarlierVersions(t *testing.T) {
	record, err := os.ReadFile("testdata/record-1.json")
	if err != nil {
		t.Fatal(err)
	}
	entry, status, err := Decode(Item{Cursor: Cursor{Revision: 7}, Record: record})
	if err != nil {
		t.Fatal(err)
	}
	want := api.HistoryEntry{
		Revision: 7, Time: time.Date(2026, 3, 3, 14, 2, 11, 0, time.UTC),
		Object: api.HistoryObject{Key: api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "api"}, UID: "0a1b"},
		Before: &api.HistoryDecision{Clusters: []string{"paris"}, Replicas: map[string]int64{"paris": 3}, OnDemand: map[string]int64{"paris": 1}, Spot: map[string]int64{"paris": 2}},
		After:  &api.HistoryDecision{Clusters: []string{"berlin", "rome"}, Replicas: map[string]int64{"berlin": 1, "rome": 2}},
		Moved:  []api.HistoryMove{{From: "paris", To: "berlin", Replicas: new(int64(1))}, {From: "paris", To: "rome", Replicas: new(int64(2))}},
		Cause:  api.Cause{Type: api.CauseClusterOffline, Object: &api.Key{Kind: api.KindCluster, Name: "paris"}, Field: "status.state", Old: "online", New: "offline"},
		Actor:  &api.HistoryActor{Token: "ci", RequestID: "r1"}, Margin: &api.HistoryMargin{OldScore: 0.5, NewScore: 0.7, Needed: 0.1},
	}
	if !reflect.DeepEqual(entry, want) {
		t.Errorf("decoded %+v, want %+v", entry, want)
	}
	var w api.WorkloadStatus
	if err := json.Unmarshal(status, &w); err != nil || w.DecisionRevision != 4 || len(w.Clusters) != 2 {
		t.Errorf("decoded the status %+v (%v)", w, err)
	}
}

// TestRecordIsThatOfTheJSON checks that a record has the form of the golden file.
func TestRecordIsThatOfTheJSON(t *testing.T) {
	workload := func(revision int64, clusters ...api.WorkloadCluster) *api.Workload {
		return &api.Workload{
			Kind: api.KindWorkload, Metadata: api.Metadata{Name: "api", Namespace: "shop", UID: "0a1b"},
			Status: api.WorkloadStatus{Clusters: clusters, DecisionRevision: revision},
		}
	}
	before := workload(3, api.WorkloadCluster{Name: "paris", Replicas: 3, OnDemand: new(int64(1)), Spot: new(int64(2))})
	after := workload(4, api.WorkloadCluster{Name: "berlin", Replicas: 1}, api.WorkloadCluster{Name: "rome", Replicas: 2})
	record, _, err := Encode(before, after, Move{
		Time:   time.Date(2026, 3, 3, 14, 2, 11, 0, time.UTC),
		Cause:  &api.Cause{Type: api.CauseClusterOffline, Object: &api.Key{Kind: api.KindCluster, Name: "paris"}, Field: "status.state", Old: "online", New: "offline"},
		Actor:  &api.HistoryActor{Token: "ci", RequestID: "r1"},
		Margin: &api.HistoryMargin{OldScore: 0.5, NewScore: 0.7, Needed: 0.1},
	}, []byte(`{"observed_generation":2,"clusters":[{"name":"berlin","replicas":1},{"name":"rome","replicas":2}],"decision_revision":4}`))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/record-1.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(record) != strings.TrimSpace(string(want)) {
		t.Errorf("the record is\n%s, want\n%s", record, want)
	}
	if same, _, err := Encode(after, after.Copy(), Move{}, nil); same != nil || err != nil {
		t.Errorf("a decision that is the same has the record %s (%v)", same, err)
	}
}

// TestMovesAddUp checks that the moves of a decision lead from the one before to the one after.
func TestMovesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *api.HistoryDecision {
			replicas := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.Int64Range(0, 5)).Draw(t, label)
			d := &api.HistoryDecision{Replicas: replicas, Clusters: []string{}}
			for name := range replicas {
				d.Clusters = append(d.Clusters, name)
			}
			slices.Sort(d.Clusters)
			return d
		}
		was, is := draw("before"), draw("after")
		sums := map[string]int64{}
		for name, n := range was.Replicas {
			sums[name] = n
		}
		named := map[string]bool{}
		for _, m := range Moved(was, is) {
			if m.From == "" && m.To == "" {
				t.Fatalf("a move from nowhere to nowhere")
			}
			if m.From != "" {
				sums[m.From] -= *m.Replicas
			}
			if m.To != "" {
				sums[m.To] += *m.Replicas
			}
			named[m.From], named[m.To] = true, true
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if sums[name] != is.Replicas[name] {
				t.Errorf("%s ends with %d replicas, want %d", name, sums[name], is.Replicas[name])
			}
			_, before := was.Replicas[name]
			_, after := is.Replicas[name]
			if before != after && !named[name] {
				t.Errorf("no move names %s, which was left or gained", name)
			}
		}
	})
}
