package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestListsShowTheFieldsThatAreAskedFor(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/eu-1", `{"metadata":{"labels":{"team":"x"}},"spec":{"description":"\\\"} ] , {","region":"eu","zones":["a","b"],"taints":[{"key":"k","value":"v","effect":"NoSelect"}],"allocatable":{"cpu":"4"}}}`)
	s.mustPut("/v1/clusters/eu-2", `{"spec":{}}`)
	for _, test := range []struct{ fields, want string }{
		{"metadata.name", `[{"metadata":{"name":"eu-1"}},{"metadata":{"name":"eu-2"}}]`},
		{"metadata.name,spec.region", `[{"metadata":{"name":"eu-1"},"spec":{"region":"eu"}},{"metadata":{"name":"eu-2"},"spec":{}}]`},
		{"spec.zones, spec.description", `[{"spec":{"description":"\\\"} ] , {","zones":["a","b"]}},{"spec":{}}]`},
		{"spec.taints.key,metadata.labels", `[{"metadata":{"labels":{"team":"x"}},"spec":{"taints":[{"key":"k"}]}},{"metadata":{},"spec":{}}]`},
		{"spec.allocatable,spec.taints,spec.taints.key", `[{"spec":{"taints":[{"key":"k","value":"v","effect":"NoSelect"}],"allocatable":{"cpu":"4"}}},{"spec":{}}]`},
		{"kind", `[{"kind":"cluster"},{"kind":"cluster"}]`},
	} {
		for _, limit := range []string{"", "&limit=1"} {
			var got []json.RawMessage
			for next := ""; ; {
				a := s.do(http.MethodGet, "/v1/clusters?fields="+strings.ReplaceAll(test.fields, " ", "%20")+limit+next, "")
				var page struct {
					Items    []json.RawMessage `json:"items"`
					Continue string            `json:"continue"`
				}
				if err := json.Unmarshal(a.body, &page); err != nil {
					t.Fatalf("fields %s: %v: %s", test.fields, err, a.body)
				}
				got = append(got, page.Items...)
				if page.Continue == "" {
					break
				}
				next = "&continue=" + page.Continue
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != test.want {
				t.Errorf("fields %s%s:\n got %s\nwant %s", test.fields, limit, text, test.want)
			}
		}
	}
	for _, fields := range []string{"spec.regoin", "name", "metadata.labels.team", "metadata.name,", "metadata.name.more", "."} {
		a := s.do(http.MethodGet, "/v1/clusters?fields="+fields, "")
		if p := a.problem(t); a.StatusCode != http.StatusUnprocessableEntity || len(p.Errors) != 1 || p.Errors[0].Field != "fields" {
			t.Errorf("fields %q: %d %+v", fields, a.StatusCode, p)
		}
	}
}

// A page that is read from the store, because its snapshot is gone, shows the same fields.
func TestPagesFromTheStoreShowTheFields(t *testing.T) {
	cluster := &api.Cluster{Metadata: api.Metadata{Name: "eu-1"}, Spec: api.ClusterSpec{Region: "eu"}}
	cluster.SetDefaults()
	p, err := parseProjection("spec.region", api.KindInfo{Kind: api.KindCluster, New: func() api.Object { return &api.Cluster{} }})
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.list(&api.List[api.Object]{Items: []api.Object{cluster}, Continue: "c", ResourceVersion: "7"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"items":[{"spec":{"region":"eu"}}],"continue":"c","resource_version":"7"}`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// Selecting in the text is the same as selecting in the value.
func TestProjectionOfAnyJSON(t *testing.T) {
	names := []string{"a", "b", `"`, `\`, "é"}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(
			rapid.Map(rapid.StringMatching(`[a"\\{}\[\],:é ]{0,6}`), func(s string) any { return s }),
			rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { return f }), rapid.Just[any](nil), rapid.Just[any](true))
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom(names), value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.MapOfN(rapid.SampledFrom(names), value(3), 0, 5).Draw(t, "value")
		p := projection{}
		for _, path := range rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "é"}), 1, 3), 1, 4).Draw(t, "paths") {
			p.add(path)
		}
		var buffer, got bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(whole); err != nil {
			t.Fatal(err)
		}
		text := bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
		if rest := p.copy(&got, text); len(rest) > 0 {
			t.Fatalf("%s: %q follows", text, rest)
		}
		var selected any
		if err := json.Unmarshal(got.Bytes(), &selected); err != nil {
			t.Fatalf("%s became %s: %v", text, got.Bytes(), err)
		}
		var again any
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if want := selectIn(again, p); !reflect.DeepEqual(selected, want) {
			t.Fatalf("%s became %s, want %v", text, got.Bytes(), want)
		}
	})
}

// selectIn is the naive implementation of a projection.
func selectIn(value any, p projection) any {
	switch v := value.(type) {
	case map[string]any:
		if p == nil {
			return v
		}
		out := map[string]any{}
		for name, below := range p {
			if inner, ok := v[name]; ok {
				out[name] = selectIn(inner, below)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = selectIn(v[i], p)
		}
		return out
	}
	return value
}
