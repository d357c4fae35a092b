package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDecodeIsStrict(t *testing.T) {
	for _, tt := range []struct{ name, text, field, message string }{
		{"unknown field", `{"kind":"placement","metadata":{"name":"p"},"spec":{"number_of_cluster":1}}`, "spec.number_of_cluster", "not a known field"},
		{"unknown field in a list", `{"kind":"cluster","metadata":{"name":"c"},"spec":{"metrics":[{"name":"m"},{"wait":1}]}}`, "spec.metrics[1].wait", "not a known field"},
		{"unknown top-level field", `{"kind":"cluster","metadate":{}}`, "metadate", "not a known field"},
		{"wrong case", `{"kind":"cluster","Metadata":{"name":"c"}}`, "Metadata", "not a known field"},
		{"repeated field", `{"kind":"cluster","metadata":{"name":"c","name":"d"}}`, "metadata.name", "twice"},
		{"repeated map key", `{"kind":"cluster","metadata":{"labels":{"a.b/c":"1","a.b/c":"2"}}}`, `metadata.labels["a.b/c"]`, "twice"},
		{"string for a number", `{"kind":"placement","metadata":{"name":"p"},"spec":{"number_of_clusters":"3"}}`, "spec.number_of_clusters", "must be a whole number, not a string"},
		{"fraction for a whole number", `{"kind":"placement","spec":{"number_of_clusters":1.5}}`, "spec.number_of_clusters", "1.5 is not a whole number"},
		{"number too large", `{"kind":"placement","spec":{"number_of_clusters":99999999999999999999}}`, "spec.number_of_clusters", "99999999999999999999 is not a whole number"},
		{"number for a string", `{"kind":"cluster","metadata":{"name":5}}`, "metadata.name", "must be a string, not a number"},
		{"object for a list", `{"kind":"cluster","spec":{"metrics":{}}}`, "spec.metrics", "must be a list, not an object"},
		{"list for an object", `{"kind":"cluster","spec":[]}`, "spec", "must be an object, not a list"},
		{"string for a boolean", `{"kind":"cluster","spec":{"paused":"yes"}}`, "spec.paused", "must be true or false, not a string"},
		{"number for a duration", `{"kind":"placement","spec":{"reschedule_after":60}}`, "spec.reschedule_after", `such as "60s", not a number`},
		{"number for a quantity", `{"kind":"cluster","spec":{"capacity":{"cpu":4}}}`, "spec.capacity.cpu", `must be a quantity in quotes, such as "4", "1500m" or "64Gi", not a number`},
		{"empty map key", `{"kind":"cluster","metadata":{"labels":{"":4}}}`, `metadata.labels[""]`, "number"},
		{"invalid time", `{"kind":"cluster","metadata":{"created_at":"yesterday"}}`, "metadata.created_at", ""},
		{"unknown field of an affinity group", policyWith(`"cluster_affinities":[{"affinity_name":"a"},{"affinity_name":"b","cluster_name":["c"]}]`), "spec.placement.cluster_affinities[1].cluster_name", "not a known field"},
		{"unknown field of an overflow affinity", policyWith(`"cluster_affinities":[{"affinity_name":"a","overflow_affinities":[{"affinity":{}}]}]`), "spec.placement.cluster_affinities[0].overflow_affinities[0].affinity", "not a known field"},
		{"wrong type within an affinity group", policyWith(`"cluster_affinities":[{"affinity_name":"a","cluster_names":"c"}]`), "spec.placement.cluster_affinities[0].cluster_names", "must be a list, not a string"},
		{"wrong type deep in an affinity group", policyWith(`"cluster_affinities":[{"affinity_name":"a","field_selector":[{"key":"zone","values":[5]}]}]`), "spec.placement.cluster_affinities[0].field_selector[0].values[0]", "must be a string, not a number"},
		{"the group's selector as a field of its own", policyWith(`"cluster_affinities":[{"affinity_name":"a","ClusterAffinity":{}}]`), "spec.placement.cluster_affinities[0].ClusterAffinity", "not a known field"},
		{"string for replicas", `{"kind":"workload","spec":{"replicas":"3"}}`, "spec.replicas", "must be a whole number, not a string"},
		{"number for a period", `{"kind":"propagation_policy","spec":{"fail_back":{"stabilization":600}}}`, "spec.fail_back.stabilization", `such as "60s", not a number`},
		{"no kind", `{"metadata":{"name":"x"}}`, "kind", `"cluster"`},
		{"unknown kind", `{"kind":"pod"}`, "kind", `"pod" is not one of`},
		{"kind of a wrong type", `{"kind":7}`, "kind", "number"},
		{"null", `null`, "kind", `"cluster"`},
	} {
		_, err := Decode([]byte(tt.text))
		var errs FieldErrors
		if !errors.As(err, &errs) || len(errs) != 1 {
			t.Errorf("%s: got %v, want a field error", tt.name, err)
			continue
		}
		if errs[0].Field != tt.field || !strings.Contains(errs[0].Message, tt.message) || errs[0].Message == "" {
			t.Errorf("%s: %q: %q, want %q about %q", tt.name, errs[0].Field, errs[0].Message, tt.field, tt.message)
		}
	}
}

// If one field is invalid, the others keep their values.
func TestDecodeKeepsNumbersNextToAnInvalidField(t *testing.T) {
	for _, number := range []int64{9007199254740993, math.MaxInt64, math.MinInt64} {
		text := fmt.Sprintf(`{"kind":"workload","metadata":{"name":"w"},"spec":{"replica":1,"priority":%d}}`, number)
		o, err := Decode([]byte(text))
		var errs FieldErrors
		if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Field != "spec.replica" {
			t.Errorf("%d: got %v, want one error, of spec.replica", number, err)
		}
		if w, ok := o.(*Workload); !ok || w.Spec.Priority != number {
			t.Errorf("%d: got %+v", number, o)
		}
	}
}

// A number that a float64 cannot represent is rejected instead of stored as another number.
func TestDecodeFloats(t *testing.T) {
	for text, message := range map[string]string{
		"9007199254740993":  "9007199254740993 has more digits than can be kept: the nearest number that can is 9007199254740992",
		"-9007199254740993": "nearest number that can is -9007199254740992",
		"1e400":             "1e400 is too large a number",
		`"1"`:               "must be a number, not a string",
		"9007199254740992":  "", "9223372036854775808": "",
		"9223372036854776000": "", // as JSON libraries write the previous one
		"1e22":                "", "0.12345678901234567890": "", "-0": "", "null": "",
	} {
		_, err := Decode([]byte(`{"kind":"metric","metadata":{"name":"m"},"spec":{"min":` + text + `}}`))
		if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), "spec.min: ") || !strings.Contains(err.Error(), message)) {
			t.Errorf("%s: got %v, want %q", text, err, message)
		}
	}
}

func TestDecodeDocument(t *testing.T) {
	document, err := DecodeDocument([]byte(` {"a":[9007199254740993,0.10,1e400,null,true,"x"]} `))
	want := map[string]any{"a": []any{json.Number("9007199254740993"), json.Number("0.10"), json.Number("1e400"), nil, true, "x"}}
	if err != nil || !reflect.DeepEqual(document, want) {
		t.Errorf("%#v, %v", document, err)
	}
	for _, text := range []string{"", "{", "{}{}", "1 2", "{} x", "nul"} {
		if document, err := DecodeDocument([]byte(text)); err == nil {
			t.Errorf("%q decoded as %v, want an error", text, document)
		}
	}
}

// policyWith returns a propagation policy with the given fields in its placement.
func policyWith(fields string) string {
	return `{"kind":"propagation_policy","metadata":{"name":"p"},"spec":{"placement":{` + fields + `}}}`
}

func TestDecodeRejectsInvalidJSON(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": " ", "cut off": `{"kind":"cluster"`, "two documents": `{"kind":"cluster"}{}`, "a word": "cluster",
		"a list": `[]`, "invalid UTF-8": "{\"kind\":\"cluster\",\"metadata\":{\"name\":\"\xff\"}}",
		"deep":        `{"kind":"cluster","spec":` + strings.Repeat("[", 1<<20),
		"deep object": strings.Repeat(`{"a":`, 1<<18), "lone surrogate": `{"kind":"cluster","metadata":{"name":"\ud800"}}`,
	} {
		o, err := Decode([]byte(text))
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %.400v", name, o, err)
		}
	}
}

func TestDecodeSetsDefaults(t *testing.T) {
	o, err := Decode([]byte(`{"kind":"placement","metadata":{"name":"web"},"spec":{"number_of_clusters":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := o.(*Placement)
	if p.Metadata.Namespace != "default" || p.Spec.RescheduleAfter != "60s" || *p.Spec.NumberOfClusters != 2 || p.Validate() != nil {
		t.Errorf("unexpected defaults %+v", p)
	}
	var h Heartbeat
	if err := DecodeInto([]byte(`{"allocated":{"cpu":"1"}}`), &h); err != nil || h.Allocated["cpu"] != "1" {
		t.Errorf("%+v, %v", h, err)
	}
	if err := DecodeInto([]byte(`{"allocatd":{}}`), &h); err == nil {
		t.Error("an unknown field was accepted")
	}
}

// FuzzDecode checks that no document makes Decode or Validate panic, and that a decoded object
// survives a round trip.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"cluster","metadata":{"name":"c","labels":{"a":"b"}},"spec":{"metrics":[{"name":"m","weight":0}],"allocatable":{"cpu":"1e3"},"kubernetes":{"kubeconfig":"x"},"health":{}},"status":{"state":"ONLINE"}}`,
		`{"kind":"metric","metadata":{"name":"m"},"spec":{"min":-1e308,"max":1e308,"allowed_values":[-0.0],"metrics_provider":{"name":"p","metric":"m"}}}`,
		`{"kind":"metrics_provider","metadata":{"name":"p"},"spec":{"type":"static","static":{"metrics":{"m":1}},"headers":{"A":"b"}}}`,
		`{"kind":"placement","metadata":{"name":"p","created_at":"2026-03-01T12:00:00+01:00"},"spec":{"label_constraints":["a is b"],"metric_constraints":["m<1"],"metrics":{},"min_improvement":1}}`,
		`{"kind":"workload","metadata":{"name":"w"},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":0,"replica_requests":{"cpu":"250m"},"priority":-1},"status":{"clusters":[{"name":"c","replicas":3}],"evictions":[{"cluster":"d","purge_mode":"Never"}]}}`,
		`{"kind":"propagation_policy","metadata":{"name":"p"},"spec":{"resource_selectors":[{"api_version":"v1","kind":"ConfigMap"}],"placement":{"cluster_affinities":[{"affinity_name":"a","cluster_names":["c"],"overflow_affinities":[{"affinity_name":"b"}]}],"spread_constraints":[{},{"spread_by_label":"tier","max_groups":2}],"cluster_tolerations":[{"key":"k"}],"replica_scheduling":{"division_preference":"Aggregated","cluster_limits":[{"max_replicas":5}]}},"failover":{"cluster":{},"application":{"purge_mode":"Never"}},"fail_back":{}}}`,
		`{"kind":"propagation_policy","metadata":{"namespace":"shop"},"spec":{"placement":{"replica_scheduling":{"weight_preference":{"static_weights":[{"affinity":{"field_selector":[{"key":"zone","operator":"In"}]},"weight":3}],"dynamic_weight":"AvailableReplicas"}}}}}`,
		`{"kind":"workload","metadata":{"name":"w"},"spec":{"api_version":"apps/v1","kind":"Deployment"},"status":{"clusters":[]}}`,
		`{"kind":"cluster","kind":"metric"}`, `{"kind":"pod"}`, `[`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Decode(data)
		if err != nil {
			var fields FieldErrors
			if o != nil && !errors.As(err, &fields) || err.Error() == "" {
				t.Fatalf("object %v with error %v", o, err)
			}
			if o != nil {
				_ = o.Validate() // must not panic on partial objects either
			}
			return
		}
		_ = o.Validate()
		for field := range o.Secrets() {
			o.SetSecret(field, Secret{}) // not marshaled
		}
		first, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("%q cannot be encoded: %v", data, err)
		}
		// A status that contains only empty lists is written as an empty one, which equals an
		// absent one.
		first = bytes.Replace(first, []byte(`,"status":{}}`), []byte(`}`), 1)
		again, err := Decode(first)
		if err != nil {
			t.Fatalf("%q was encoded as %q, which cannot be decoded: %v", data, first, err)
		}
		second, err := json.Marshal(again)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("encoded as %q, then as %q (%v)", first, second, err)
		}
		before := fmt.Sprint(o.Validate())
		o.SetDefaults()
		third, _ := json.Marshal(o)
		third = bytes.Replace(third, []byte(`,"status":{}}`), []byte(`}`), 1)
		if !bytes.Equal(first, third) || fmt.Sprint(o.Validate()) != before {
			t.Fatalf("defaults applied twice: %q, once: %q", third, first)
		}
	})
}

func TestSplitField(t *testing.T) {
	for field, want := range map[string][]any{
		"spec.metrics[0].weight":       {"spec", "metrics", 0, "weight"},
		`metadata.labels["a.b/[c]"]`:   {"metadata", "labels", "a.b/[c]"},
		`spec.headers["say \"hi\""].x`: {"spec", "headers", `say "hi"`, "x"},
		"":                             nil,
		"spec":                         {"spec"},
		"a[b]":                         {"a", "b"},
		`a["open`:                      {"a", `["open`},
		"a[1":                          {"a", 1},
	} {
		if got := SplitField(field); !reflect.DeepEqual(got, want) {
			t.Errorf("SplitField(%s) = %#v, want %#v", field, got, want)
		}
	}
}

// FuzzSplitField checks that a path built from any key and index is split into the same parts, and
// that no text makes SplitField panic or loop.
func FuzzSplitField(f *testing.F) {
	f.Add("team/name", 3, `metadata.labels["a`)
	f.Add("\x00\xff\"]", -1, "[[.")
	f.Fuzz(func(t *testing.T, key string, position int, text string) {
		SplitField(text)
		field := index("spec.map["+quote(key)+"]", position) + ".end"
		if got, want := SplitField(field), []any{"spec", "map", key, position, "end"}; !reflect.DeepEqual(got, want) {
			t.Fatalf("SplitField(%s) = %#v, want %#v", field, got, want)
		}
	})
}

// TestDecodeReportsEveryInvalidField checks that all invalid fields are reported together, and that
// the rest of the object can be validated.
func TestDecodeReportsEveryInvalidField(t *testing.T) {
	object, err := Decode([]byte(`{"kind":"placement","metadata":{"name":"web","colour":"red"},
		"spec":{"resource_requests":{"cpu":4},"number_of_clusters":"two","label_constraints":["a is b",5],"shape":1,"min_improvement":-1}}`))
	var errs FieldErrors
	if !errors.As(err, &errs) || object == nil {
		t.Fatalf("got %v, %v", object, err)
	}
	errs = errs.And(object.Validate())
	var fields []string
	for _, e := range errs {
		fields = append(fields, e.Field)
	}
	slices.Sort(fields)
	want := []string{
		"metadata.colour", "spec.label_constraints[1]", "spec.min_improvement",
		"spec.number_of_clusters", "spec.resource_requests.cpu", "spec.shape",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("fields %q, want %q", fields, want)
	}
}

// The error of a time repeats it, with what is wrong.
func TestDecodeWrongTime(t *testing.T) {
	for text, want := range map[string]string{
		"2031-02-29T00:00:00Z": `"2031-02-29T00:00:00Z" is not a time of RFC 3339, such as 2026-01-31T00:00:00Z or 2026-01-31T01:00:00+01:00: day out of range`,
		"soon":                 `"soon" is not a time of RFC 3339, such as 2026-01-31T00:00:00Z or 2026-01-31T01:00:00+01:00`,
	} {
		var errs FieldErrors
		err := DecodeInto([]byte(`{"spec":{"scores":{},"valid_until":"`+text+`"}}`), &PlacementScore{})
		if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Message != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
