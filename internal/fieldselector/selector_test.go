package fieldselector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func kind(t testing.TB, kind api.Kind) api.KindInfo {
	t.Helper()
	info, ok := api.LookupKind(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	return info
}

func TestSelects(t *testing.T) {
	half, created := 0.5, time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	cluster := &api.Cluster{
		Metadata: api.Metadata{Name: "eu-1", Generation: 3, CreatedAt: &created},
		Spec: api.ClusterSpec{
			Region: "eu", Description: `a=b,c\d`, Zones: []string{"a", "b"},
			Taints: []api.Taint{{Key: "k", Effect: api.EffectNoSelect}, {Key: "l", Effect: api.EffectPreferNoSelect}},
		},
		Status: api.ClusterStatus{
			CloudScore: &half,
			Metrics:    []api.ClusterMetricStatus{{Name: "load", Value: &half}, {Name: "price"}},
			Conditions: []api.Condition{{Type: "Ready", Status: "False", Reason: "Probed"}, {Type: "Bound", Status: "True"}},
		},
	}
	for _, test := range []struct {
		selector string
		want     bool
	}{
		{"", true},
		{"spec.region=eu", true},
		{"spec.region==eu", true},
		{"spec.region=us", false},
		{"spec.region=EU", false},
		{"spec.region!=us", true},
		{"spec.region!=eu", false},
		{"spec.region=eu,metadata.name=eu-1", true},
		{"spec.region=eu,metadata.name=eu-2", false},
		{" spec.region =eu", true},
		{`spec.description=a\=b\,c\\d`, true},
		{"spec.paused=false", true},
		{"spec.paused=true", false},
		{"metadata.generation=3", true},
		{"metadata.created_at=2026-01-31T12:00:00Z", true},
		{"status.cloud_score=0.5", true},
		// What is absent.
		{"metadata.modified_at=", true},
		{"metadata.modified_at!=", false},
		{"metadata.created_at=", false},
		{"spec.cloud_provider=", true},
		{"spec.health.url=", true},
		{"spec.health.url=x", false},
		{"spec.health.url!=x", true},
		// Lists.
		{"spec.zones=a", true},
		{"spec.zones=b", true},
		{"spec.zones=c", false},
		{"spec.zones!=a", false},
		{"spec.zones!=c", true},
		{"spec.zones=", false},
		{"spec.taints.key=l", true},
		{"spec.taints.effect=NoSelectIfNew", false},
		{"spec.metrics.name=", true},
		{"spec.metrics.name=x", false},
		{"status.metrics.value=0.5", true},
		{"status.metrics.value=", true}, // that of the second
		{"status.metrics.value=1", false},
		// Conditions.
		{"status.conditions.Ready=False", true},
		{"status.conditions.Ready!=False", false},
		{"status.conditions.Ready=True", false},
		{"status.conditions.Bound=True", true},
		{"status.conditions.Observed=True", false},
		{"status.conditions.Observed!=True", true},
		{"status.conditions.Observed=", true},
		{"status.conditions.reason=Probed", true},
	} {
		s, err := Parse(test.selector, kind(t, api.KindCluster))
		if err != nil {
			t.Errorf("%s: %v", test.selector, err)
			continue
		}
		if got := s.Matches(cluster); got != test.want {
			t.Errorf("%s: %t, want %t", test.selector, got, test.want)
		}
	}
}

func TestRejects(t *testing.T) {
	for _, test := range []struct {
		kind           api.Kind
		selector, want string
	}{
		{api.KindCluster, "spec.region", "field=value"},
		{api.KindCluster, "spec.region>eu", "field=value"},
		{api.KindCluster, "=eu", "the name of the field is missing"},
		{api.KindCluster, "=", "the name of the field is missing"},
		{api.KindCluster, " =eu", "a cluster has kind, metadata, spec, status"},
		{api.KindCluster, "spec.region=a=b", "field=value"},
		{api.KindCluster, "region=eu", "a cluster has kind, metadata, spec, status"},
		{api.KindCluster, "spec=eu", "spec has namespace, "},
		{api.KindCluster, "spec.regoin=eu", `"spec.regoin" is not a field to select by: spec has namespace, `},
		{api.KindCluster, "spec.region.name=eu", "spec.region has no fields"},
		{api.KindCluster, "spec.region.=eu", "spec.region has no fields"},
		{api.KindCluster, "metadata.created_at.year=1", "metadata.created_at has no fields"},
		{api.KindCluster, "metadata.labels.team=x", "metadata has name, "},
		{api.KindCluster, "status.conditions.ready=False", "status.conditions has type, status, reason, message, detail, last_transition_at, and types of conditions, such as Ready"},
		{api.KindCluster, "status.conditions.3=False", "status.conditions has type"},
		{api.KindCluster, "status.conditions.=False", "status.conditions has type"},
		{api.KindCluster, "status.conditions.Ready.status=False", "status.conditions.Ready has no fields"},
		{api.KindCluster, "spec.kubernetes.kubeconfig=x", "is not a field to select by"},
		{api.KindMetricsProvider, "spec.bearer_token=x", "is not a field to select by"},
		{api.KindMetricsProvider, "spec.headers.A=x", "is not a field to select by"},
		{api.KindCluster, strings.Repeat("spec.region=eu,", maxTerms+1), "at most 20 terms, has 21"},
	} {
		_, err := Parse(test.selector, kind(t, test.kind))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.selector, err, test.want)
		}
	}
	if _, err := Parse(strings.Repeat("spec.region=eu,", maxTerms), kind(t, api.KindCluster)); err != nil {
		t.Error(err)
	}
}

// No selector can be about a secret, whatever the kind.
func TestSecretsCannotBeSelectedBy(t *testing.T) {
	secrets := 0
	for _, info := range api.Kinds {
		for _, f := range api.SecretFields(info.Kind) {
			secrets++
			if _, err := Parse(f.Field+"=x", info); err == nil {
				t.Errorf("%s of a %s can be selected by", f.Field, info.Kind)
			}
		}
	}
	if secrets == 0 {
		t.Error("there are no secrets")
	}
}

// FuzzParse reads any selector for every kind. What is accepted is a field of the JSON with a value, and an object
// without anything is selected by exactly one of a term and its opposite.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "=", ",", "!=", "spec.region=eu", "status.conditions.Ready=False,spec.zones!=a", `spec.region=\`, `spec.region=\,\=`, "metadata.name==",
		"spec.\x00=a", "status.conditions.=", "status.conditions.\xff=", ".", "..=", "kind=cluster", "status.clusters.evicting.a=b", strings.Repeat("metadata.", 100) + "=",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, field, value string) {
		for _, info := range api.Kinds {
			for _, text := range []string{field, field + "=" + value} {
				if s, err := Parse(text, info); err == nil {
					s.Matches(info.New())
				} else if text == "" || err.Error() == "" {
					t.Errorf("%q: %v", text, err)
				}
			}
			if strings.ContainsAny(field+value, `,=!\`) {
				continue
			}
			is, err := Parse(field+"="+value, info)
			if err != nil {
				continue
			}
			not, err := Parse(field+"!="+value, info)
			if err != nil || is.Matches(info.New()) == not.Matches(info.New()) {
				t.Errorf("%s of a %s: neither or both of = and != (%v)", field, info.Kind, err)
			}
		}
	})
}

// Every value that the JSON of an object has can be selected by where it is, except what is in maps.
func TestEveryValueOfAnObject(t *testing.T) {
	for _, info := range api.Kinds {
		object := info.New()
		object.Meta().Name, object.Meta().Namespace = "web", "shop"
		object.SetDefaults()
		encoded, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var whole map[string]any
		if err := json.Unmarshal(encoded, &whole); err != nil {
			t.Fatal(err)
		}
		values := 0
		for field, value := range leaves("", whole) {
			s, err := Parse(field+"="+value, info)
			if err != nil {
				t.Errorf("%s: %v", info.Kind, err)
			} else if !s.Matches(object) {
				t.Errorf("%s: not selected by %s=%s", info.Kind, field, value)
			}
			values++
		}
		if values < 2 {
			t.Errorf("%s: only %d values in %s", info.Kind, values, encoded)
		}
	}
}

// leaves are the values in a JSON object by path.
func leaves(at string, object map[string]any) map[string]string {
	out := map[string]string{}
	for name, value := range object {
		switch v := value.(type) {
		case map[string]any:
			for path, leaf := range leaves(at+name+".", v) {
				out[path] = leaf
			}
		case string, bool, float64:
			out[at+name] = fmt.Sprint(v)
		}
	}
	return out
}

func TestErrorsNameOnlyWhatCanBeSelected(t *testing.T) {
	for _, info := range api.Kinds {
		for _, prefix := range []string{"spec.", "status.", "metadata."} {
			_, err := Parse(prefix+"x=", info)
			if err == nil {
				t.Fatalf("%s has a field %sx", info.Kind, prefix)
			}
			about, list, _ := strings.Cut(err.Error(), " has ")
			if part := strings.TrimSuffix(prefix, "."); !strings.HasSuffix(about, " "+part) {
				if part != "status" || slices.Contains(strings.Split(list, ", "), part) { // only a status can be empty
					t.Errorf("%s: %v", info.Kind, err)
				}
				continue
			}
			for name := range strings.SplitSeq(list, ", ") {
				if _, err := Parse(prefix+name+"=", info); err != nil && !strings.Contains(err.Error(), prefix+name+" has ") {
					t.Errorf("%s: %v", info.Kind, err)
				}
			}
			if slices.Contains(strings.Split(list, ", "), "labels") {
				t.Errorf("%s: %v", info.Kind, err)
			}
		}
	}
}
