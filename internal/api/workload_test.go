package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func testWorkload(change func(w *Workload)) *Workload {
	w := &Workload{Metadata: Metadata{Name: "w"}, Spec: WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(3))}}
	w.SetDefaults()
	change(w)
	return w
}

func TestWorkloadValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(w *Workload)
		fields []string
	}{
		{"all fields", func(w *Workload) {
			w.Metadata.Labels = map[string]string{"tier": "front"}
			w.Spec.ReplicaRequests, w.Spec.Priority = Quantities{"cpu": "250m", "nvidia.com/gpu": "1"}, -5
		}, nil},
		{"not replicated", func(w *Workload) { w.Spec = WorkloadSpec{APIVersion: "v1", Kind: "ConfigMap"} }, nil},
		{"zero replicas", func(w *Workload) { w.Spec.Replicas = new(int64(0)) }, nil},
		{"maximum of replicas", func(w *Workload) { w.Spec.Replicas = new(int64(1<<31 - 1)) }, nil},
		{"one replica too many", func(w *Workload) { w.Spec.Replicas = new(int64(1 << 31)) }, []string{"spec.replicas"}},
		{"group with dots", func(w *Workload) { w.Spec.APIVersion = "stable.example.com/v1beta1" }, nil},
		{"empty spec", func(w *Workload) { w.Spec = WorkloadSpec{} }, []string{"spec.api_version", "spec.kind"}},
		{"everything invalid", func(w *Workload) {
			w.Metadata.Name, w.Metadata.Namespace = "W", "_"
			w.Spec = WorkloadSpec{APIVersion: "apps", Kind: "apps/Deployment", Replicas: new(int64(-1)), ReplicaRequests: Quantities{"cpu": "-1", "a b": "1"}}
		}, []string{"metadata.name", "metadata.namespace", "spec.api_version", "spec.kind", "spec.replicas", `spec.replica_requests["a b"]`, `spec.replica_requests["cpu"]`}},
		{"version without a group's name", func(w *Workload) { w.Spec.APIVersion = "/v1" }, []string{"spec.api_version"}},
		{"kind in the version", func(w *Workload) { w.Spec.APIVersion = "apps/v1/Deployment" }, []string{"spec.api_version"}},
		{"space in the kind", func(w *Workload) { w.Spec.Kind = "Stateful Set" }, []string{"spec.kind"}},
		{"kind too long", func(w *Workload) { w.Spec.Kind = strings.Repeat("K", 64) }, []string{"spec.kind"}},
	} {
		errs := testWorkload(tt.change).Validate()
		if got := paths(errs); !slices.Equal(got, tt.fields) {
			t.Errorf("%s: errors in %q, want %q: %v", tt.name, got, tt.fields, errs)
		}
	}
}

func TestHealthReportValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		report HealthReport
		fields []string
	}{
		{"healthy", HealthReport{Cluster: "c", Status: Healthy}, nil},
		{"in capitals, as in Kubernetes", HealthReport{Cluster: "c", Status: "Unhealthy", Message: "CrashLoopBackOff"}, nil},
		{"unknown", HealthReport{Cluster: "c", Status: "UNKNOWN"}, nil},
		{"empty", HealthReport{}, []string{"cluster", "status"}},
		{"invalid status", HealthReport{Cluster: "c", Status: "ok"}, []string{"status"}},
		{"message too long", HealthReport{Cluster: "C", Status: Healthy, Message: strings.Repeat("x", 1025)}, []string{"cluster", "message"}},
	} {
		tt.report.SetDefaults()
		errs := tt.report.Validate()
		if got := paths(errs); !slices.Equal(got, tt.fields) {
			t.Errorf("%s: errors in %q, want %q: %v", tt.name, got, tt.fields, errs)
		}
	}
}

// TestWorkloadReplicasOnTheWire checks that absent, zero and positive replicas stay distinct.
func TestWorkloadReplicasOnTheWire(t *testing.T) {
	for text, want := range map[string]*int64{`{}`: nil, `{"replicas":null}`: nil, `{"replicas":0}`: new(int64(0)), `{"replicas":7}`: new(int64(7))} {
		o, err := Decode([]byte(`{"kind":"workload","metadata":{"name":"w"},"spec":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got := o.(*Workload).Spec.Replicas
			if (got == nil) != (want == nil) || got != nil && *got != *want || o.(*Workload).Spec.Replicated() != (want != nil) {
				t.Errorf("%s decoded as %v", text, got)
			}
			written, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if o, err = Decode(written); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWorkloadStatusRoundTrip checks that a status survives a round trip, so that a simulation can
// start from what the API returns.
func TestWorkloadStatusRoundTrip(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := testWorkload(func(w *Workload) {
		w.Status = WorkloadStatus{
			ObservedGeneration: 2, ObservedRescheduleRequests: 1, Policy: "default/p", PolicyUID: "u", PolicyGeneration: 3, ObservedAffinity: "local",
			Clusters:          []WorkloadCluster{{Name: "a", Replicas: 0, Since: &at}, {Name: "b", Replicas: 3, Since: &at}},
			Evictions:         []Eviction{{Cluster: "c", Replicas: 2, Reason: EvictedClusterLost, Message: "offline", PurgeMode: PurgeGracefully, Since: &at, Until: &at}},
			Health:            []ClusterHealth{{Cluster: "a", Status: Healthy, Since: &at}, {Cluster: "b", Status: Unhealthy, Message: "crashes"}},
			EarlierAffinities: []EarlierAffinity{{AffinityName: "first", FeasibleSince: &at}},
			ScheduledAt:       &at, DecisionRevision: 4,
			Conditions: []Condition{{Type: ConditionScheduled, Status: ConditionTrue, Reason: "Scheduled", LastTransitionAt: &at}},
		}
	})
	first, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(first) {
		t.Errorf("encoded as\n%s, then as\n%s (%v)", first, second, err)
	}
	if !strings.Contains(string(first), `{"name":"a","replicas":0`) {
		t.Errorf("a cluster without replicas is not encoded with 0: %s", first)
	}
	status := again.(*Workload).Status
	if got := status.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("clusters %q", got)
	}
	if status.HealthOn("b") == nil || status.HealthOn("b").Message != "crashes" || status.HealthOn("c") != nil {
		t.Errorf("health %+v", status.Health)
	}
}

func TestWorkloadIntent(t *testing.T) {
	base := testWorkload(func(*Workload) {})
	for name, tt := range map[string]struct {
		change func(w *Workload)
		same   bool
	}{
		"nothing":             {func(*Workload) {}, true},
		"status":              {func(w *Workload) { w.Status.Clusters = []WorkloadCluster{{Name: "a"}} }, true},
		"replicas":            {func(w *Workload) { w.Spec.Replicas = new(int64(4)) }, false},
		"no longer any":       {func(w *Workload) { w.Spec.Replicas = new(int64(0)) }, false},
		"no longer a number":  {func(w *Workload) { w.Spec.Replicas = nil }, false},
		"priority":            {func(w *Workload) { w.Spec.Priority = 1 }, false},
		"labels":              {func(w *Workload) { w.Metadata.Labels = map[string]string{"a": "b"} }, false},
		"empty requests":      {func(w *Workload) { w.Spec.ReplicaRequests = Quantities{} }, true},
		"requests":            {func(w *Workload) { w.Spec.ReplicaRequests = Quantities{"cpu": "1"} }, false},
		"a reschedule wanted": {func(w *Workload) { w.Metadata.RescheduleRequests = 1 }, true},
	} {
		if SameIntent(base, testWorkload(tt.change)) != tt.same {
			t.Errorf("%s: SameIntent() is not %t", name, tt.same)
		}
	}
	if got := base.Spec.APIResource(); got != "apps/v1/Deployment" {
		t.Errorf("type %q", got)
	}
}
