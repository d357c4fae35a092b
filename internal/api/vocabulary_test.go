package api

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spoken returns the types that users read or write. Nested types are found through them.
func spoken() map[string]reflect.Type {
	types := map[string]reflect.Type{
		"metadata": reflect.TypeFor[Metadata](), "explanation": reflect.TypeFor[Explanation](), "simulation": reflect.TypeFor[Simulation](),
		"simulation result": reflect.TypeFor[SimulationResult](), "preview": reflect.TypeFor[Preview](), "server": reflect.TypeFor[ServerInfo](),
		"live OpenStack": reflect.TypeFor[LiveOpenStack](), "distribution": reflect.TypeFor[DistributedWorkload](), "problem": reflect.TypeFor[Problem](),
		"heartbeat": reflect.TypeFor[Heartbeat](), "health report": reflect.TypeFor[HealthReport](), "cloud report": reflect.TypeFor[CloudReport](),
		"interruption": reflect.TypeFor[Interruption](),
	}
	for _, info := range Kinds {
		object := info.New()
		types[string(info.Kind)+" spec"] = reflect.TypeOf(object.SpecPart()).Elem()
		types[string(info.Kind)+" status"] = reflect.TypeOf(object.StatusPart()).Elem()
	}
	return types
}

// eachField calls f for every field in a type, with its path.
func eachField(t reflect.Type, at string, f func(at string, field *Field)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	fields := Fields(t)
	for i := range fields {
		path := strings.TrimPrefix(at+"."+fields[i].Name, ".")
		f(path, &fields[i])
		eachField(fields[i].Type, path, f)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for name, of := range spoken() {
		eachField(of, "", func(at string, f *Field) {
			switch {
			case f.Doc == "":
				t.Errorf("%s: %s has no description", name, at)
			case !strings.HasSuffix(f.Doc, "."):
				t.Errorf("%s: the description of %s is not a sentence: %s", name, at, f.Doc)
			case strings.Count(f.Doc, "`")%2 != 0, strings.Contains(f.Doc, " '"):
				t.Errorf("%s: the quotes in the description of %s do not match: %s", name, at, f.Doc)
			case strings.Contains(f.Doc, "Default") && at != "objects" || strings.Contains(f.Doc, "(default)"):
				t.Errorf("%s: the description of %s repeats the default: %s", name, at, f.Doc)
			}
		})
	}
}

// TestTagsAreValid checks the tags of all fields, so that users never get an error about a tag.
func TestTagsAreValid(t *testing.T) {
	for name, of := range spoken() {
		if err := structureOf(of).mistakes; err != nil {
			t.Errorf("%s: %s", name, err)
		}
	}
}

// Every mistake in a tag is reported, and the tag then has no effect.
func TestInvalidTags(t *testing.T) {
	for _, tt := range []struct {
		want string
		of   reflect.Type
	}{
		{`the default of struct { A int64 "json:\"a,omitempty\" default:\"one\"" }.a: "one" is not a valid int64`, reflect.TypeFor[struct {
			A int64 `json:"a,omitempty" default:"one"`
		}]()},
		{".a: b is not a text field next to it", reflect.TypeFor[struct {
			A string `json:"a,omitempty" defaultBy:"b x=1"`
		}]()},
		{".a: b is not a text field next to it", reflect.TypeFor[struct {
			A string `json:"a,omitempty" defaultBy:"b x=1"`
			B int64  `json:"b,omitempty"`
		}]()},
		{`"x1" is not of the form value=default`, reflect.TypeFor[struct {
			A string `json:"a,omitempty" defaultBy:"b x1"`
			B string `json:"b,omitempty"`
		}]()},
		{"no cases", reflect.TypeFor[struct {
			A string `json:"a,omitempty" defaultBy:"b"`
			B string `json:"b,omitempty"`
		}]()},
		{`"many" is not a valid int64`, reflect.TypeFor[struct {
			A int64  `json:"a,omitempty" defaultBy:"b x=many"`
			B string `json:"b,omitempty"`
		}]()},
		{"the tag minimum", reflect.TypeFor[struct {
			A int64 `json:"a,omitempty" minimum:"one"`
		}]()},
		{"the tag maximum", reflect.TypeFor[struct {
			A string `json:"a,omitempty" maximum:"1"`
		}]()},
		{"the tag maxLength", reflect.TypeFor[struct {
			A string `json:"a,omitempty" maxLength:"long"`
		}]()},
		{"the tag shortest", reflect.TypeFor[struct {
			A Duration `json:"a,omitempty" shortest:"1"`
		}]()},
		{"the tag shortest", reflect.TypeFor[struct {
			A string `json:"a,omitempty" shortest:"1s"`
		}]()},
		{"the tag enum", reflect.TypeFor[struct {
			A bool `json:"a,omitempty" enum:"true"`
		}]()},
		{"the tag enum", reflect.TypeFor[struct {
			In *[]struct {
				A int64 `json:"a,omitempty" enum:"1,2"`
			} `json:"in"`
		}]()},
	} {
		err := structureOf(tt.of).mistakes
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.of, err, tt.want)
		}
		empty := reflect.New(tt.of)
		if setDefaults(empty.Interface()); !empty.Elem().IsZero() {
			t.Errorf("%s: %v was filled in", tt.of, empty)
		}
		var errs FieldErrors
		if errs.checkFields("", empty.Interface()); errs != nil {
			t.Errorf("%s: %s", tt.of, errs)
		}
	}
}

// Changing a default that was set in one object must not change other objects.
func TestDefaultsAreNotShared(t *testing.T) {
	for _, document := range written {
		a, errA := Decode([]byte(document))
		b, errB := Decode([]byte(document))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		seen := map[uintptr]string{}
		addresses(reflect.ValueOf(a.SpecPart()), "spec", func(address uintptr, at string) { seen[address] = at })
		if len(seen) == 0 {
			t.Errorf("%s: the object has no pointers", document)
		}
		addresses(reflect.ValueOf(b.SpecPart()), "spec", func(address uintptr, at string) {
			if first, shared := seen[address]; shared {
				t.Errorf("%s: %s is shared with %s of another object", document, at, first)
			}
		})
	}
}

// addresses calls f with the address of everything that a value points to.
func addresses(v reflect.Value, at string, f func(address uintptr, at string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			if v.Elem().Type().Size() > 0 {
				f(v.Pointer(), at)
			}
			addresses(v.Elem(), at, f)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			f(v.Pointer(), at)
		}
		for i := range v.Len() {
			addresses(v.Index(i), index(at, i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				addresses(v.Field(i), at+"."+v.Type().Field(i).Name, f)
			}
		}
	default: // contains no pointers, or has no default
	}
}

// Every default is a valid value of its field. If a default depends on another field, that field exists.
func TestDefaultsAreValid(t *testing.T) {
	for name, of := range spoken() {
		eachField(of, "", func(at string, f *Field) {
			texts := []string{f.Default}
			if f.DefaultBy != nil {
				for _, c := range f.DefaultBy.Cases {
					texts = append(texts, c.Value)
				}
			}
			for _, text := range texts {
				if text == "" {
					continue
				}
				value, err := parseDefault(f.Type, text)
				if err != nil {
					t.Errorf("%s: the default of %s: %s", name, at, err)
				}
				var errs FieldErrors
				r := rule{Field: f, wrong: f.check()}
				if value.IsValid() && r.wrong != nil {
					r.checkValue(&errs, value)
				}
				if errs != nil {
					t.Errorf("%s: the default of %s breaks its rules: %s", name, at, errs)
				}
			}
		})
	}
}

// The constants used as defaults in the code equal the defaults in the tags.
func TestDefaultConstantsMatchTags(t *testing.T) {
	for _, tt := range []struct {
		of   reflect.Type
		name string
		want any
	}{
		{reflect.TypeFor[HealthSpec](), "failure_threshold", DefaultFailureThreshold},
		{reflect.TypeFor[HealthSpec](), "success_threshold", DefaultSuccessThreshold},
		{reflect.TypeFor[MetricsProviderSpec](), "interval", DefaultProviderInterval},
		{reflect.TypeFor[MetricsStrategy](), "stickiness", DefaultStickiness},
		{reflect.TypeFor[OpenStackSpec](), "interval", DefaultCollectInterval},
		{reflect.TypeFor[OpenStackSpec](), "timeout", DefaultCollectTimeout},
		{reflect.TypeFor[OpenStackSpec](), "user_domain_name", DefaultOpenStackDomain},
		{reflect.TypeFor[OpenStackSpec](), "project_domain_name", DefaultOpenStackDomain},
		{reflect.TypeFor[ClusterFailover](), "grace_period", DefaultGracePeriod},
		{reflect.TypeFor[SpotSpec](), "node_type_key", DefaultNodeTypeKey},
		{reflect.TypeFor[ClusterSetSpec](), "namespaces", `["` + allNamespaces + `"]`},
	} {
		f := fieldNamed(t, tt.of, tt.name)
		got := f.Default
		if f.DefaultBy != nil {
			got = f.DefaultBy.Cases[0].Value
		}
		if want := fmt.Sprint(tt.want); got != want {
			t.Errorf("%s.%s defaults to %q, but the code has %q", tt.of.Name(), tt.name, got, want)
		}
	}
	for name, want := range map[string][2]float64{"weight": {-maxPrioritizerWeight, maxPrioritizerWeight}} {
		if f := fieldNamed(t, reflect.TypeFor[PrioritizerConfig](), name); *f.Minimum != want[0] || *f.Maximum != want[1] {
			t.Errorf("%s has the bounds %v to %v, but the code has %v", name, *f.Minimum, *f.Maximum, want)
		}
	}
	if f := fieldNamed(t, reflect.TypeFor[PlacementScoreSpec](), "scores"); *f.Minimum != MinScore || *f.Maximum != MaxScore {
		t.Errorf("scores have the bounds %v to %v, but the code has %v to %v", *f.Minimum, *f.Maximum, MinScore, MaxScore)
	}
}

func fieldNamed(t *testing.T, of reflect.Type, name string) *Field {
	t.Helper()
	fields := Fields(of)
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("%s has no field %s", of.Name(), name)
	}
	return &fields[i]
}

// The values of an enumeration are the constants of its type. Some fields accept only some of them.
func TestEnumsMatchConstants(t *testing.T) {
	constants := constantsByType(t)
	some := map[string]bool{"purge_mode": true, "operator": true, "mode": true}
	for name, of := range spoken() {
		eachField(of, "", func(at string, f *Field) {
			known := constants[f.Type.Name()]
			if f.Enum == nil || len(known) == 0 {
				return
			}
			for _, value := range f.Enum {
				if !known[value] {
					t.Errorf("%s: %s may be %q, which is not a constant of %s", name, at, value, f.Type.Name())
				}
			}
			for value := range known {
				if value != "" && !some[f.Name] && !slices.Contains(f.Enum, value) {
					t.Errorf("%s: %s may not be %q, which is a constant of %s", name, at, value, f.Type.Name())
				}
			}
		})
	}
}

// constantsByType returns the string constants of each type that the source of the package declares.
func constantsByType(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, named := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if !named || !literal || value.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			if out[kind.Name] == nil {
				out[kind.Name] = map[string]bool{}
			}
			out[kind.Name][text] = true
			return true
		})
	}
	return out
}

// Validating an object checks every rule in the tags, however deep the field is in the spec.
func TestTagsAreValidated(t *testing.T) {
	checked := 0
	for _, info := range Kinds {
		var visit func(of reflect.Type, build func(leaf any) map[string]any, at string)
		visit = func(of reflect.Type, build func(leaf any) map[string]any, at string) {
			fields := Fields(of)
			for i := range fields {
				f := &fields[i]
				path := at + "." + f.Name
				var bad any
				switch inner := f.Type; {
				case f.Enum != nil:
					bad = "not one of them"
				case f.Type == reflect.TypeFor[Duration]():
					bad = (f.Shortest - 1).String()
				case f.Type == reflect.TypeFor[Quantity](), f.Type == reflect.TypeFor[Quantities]():
					bad = "-1"
				case f.MaxLength > 0:
					bad = strings.Repeat("ü", f.MaxLength+1)
				case f.Absent != "":
					bad = []any{}
				case f.Minimum != nil:
					bad = min(*f.Minimum-1, -1) // 0 may mean absent
				default:
					for inner.Kind() == reflect.Pointer {
						inner = inner.Elem()
					}
					switch {
					case inner.Kind() == reflect.Struct && len(Fields(inner)) > 0:
						visit(inner, func(leaf any) map[string]any { return build(map[string]any{f.Name: leaf}) }, path)
					case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
						visit(inner.Elem(), func(leaf any) map[string]any { return build(map[string]any{f.Name: []any{leaf}}) }, path+"[0]")
					}
					continue
				}
				if f.Type.Kind() == reflect.Map {
					bad, path = map[string]any{"x": bad}, path+`["x"]`
				}
				data, err := json.Marshal(build(map[string]any{f.Name: bad}))
				if err != nil {
					t.Fatal(err)
				}
				object := info.New()
				if err := json.Unmarshal(data, object.SpecPart()); err != nil {
					t.Fatalf("%s: %s: %s", info.Kind, data, err)
				}
				object.SetDefaults()
				checked++
				if !slices.ContainsFunc(object.Validate(), func(e FieldError) bool { return e.Field == path }) {
					t.Errorf("%s: no error about %s in %s: %s", info.Kind, path, data, object.Validate())
				}
			}
		}
		visit(reflect.TypeOf(info.New().SpecPart()).Elem(), func(leaf any) map[string]any {
			document, _ := leaf.(map[string]any)
			return document
		}, "spec")
	}
	if checked < 85 {
		t.Errorf("only %d fields with rules", checked)
	}
}

// The maximum length of a text is in characters, not in bytes.
func TestMaxLengthCountsCharacters(t *testing.T) {
	c := &Cluster{Metadata: Metadata{Name: "c1"}, Spec: ClusterSpec{Description: strings.Repeat("ü", 1024)}}
	c.SetDefaults()
	if errs := c.Validate(); errs != nil {
		t.Error(errs)
	}
	c.Spec.Description += "u"
	if errs := c.Validate(); len(errs) != 1 || errs[0] != (FieldError{Field: "spec.description", Message: "must have at most 1024 characters, has 1025"}) {
		t.Error(errs)
	}
}

func TestDescriptions(t *testing.T) {
	for doc, want := range map[string]string{
		"'a': the cluster's own. 'b' (or 'c'): the clusters' claim 'd'.": "`a`: the cluster's own. `b` (or `c`): the clusters' claim `d`.",
		"A number ('\"3\"') of it's own":                                 "A number (`\"3\"`) of it's own",
	} {
		if got := markdown(doc); got != want {
			t.Errorf("markdown(%s) = %s, want %s", doc, got, want)
		}
	}
	for _, tt := range []struct {
		of   reflect.Type
		name string
		want string
	}{
		{reflect.TypeFor[HealthSpec](), "interval", "Time between two checks, or within which a heartbeat is expected. At least `100ms`. Defaults to `10s`."},
		{reflect.TypeFor[HealthSpec](), "failure_threshold", "Number of consecutive failures after which the cluster is taken out of service. At least 1. Defaults to `3`."},
		{reflect.TypeFor[PrioritizerConfig](), "weight", "Weight of the score. `0` disables the prioritizer; a negative weight prefers low scores. From -10 to 10. Defaults to `1`."},
		{reflect.TypeFor[SpreadConstraint](), "type", "What `topology_key` refers to. One of `Label`, `Claim` or `Field`. Defaults to `Label`."},
		{reflect.TypeFor[OpenStackSpec](), "user_domain_name", "Domain of the user. Defaults to `Default` if `username` is set."},
		{reflect.TypeFor[PlacementSpec](), "reschedule_after", "A decision younger than this is kept as long as it fits. Defaults to `0s` if `strategy` is `prioritizers`, otherwise to `60s`."},
		{reflect.TypeFor[GroupConstraint](), "max_groups", "Largest number of groups. If omitted or `0`, there is no limit."},
		{reflect.TypeFor[ClusterLimit](), "max_replicas", "Largest number of replicas on a cluster."},
		{reflect.TypeFor[ClusterSpec](), "description", "Free text about the cluster. Shown in explanations and lists. At most 1024 characters."},
		{reflect.TypeFor[ClusterSpec](), "claims", "Facts about the cluster by name, such as its version or platform. Matched by the claim selectors of placements. Each value has at most 1024 characters."},
	} {
		if got := fieldNamed(t, tt.of, tt.name).Describe(); got != tt.want {
			t.Errorf("%s.%s has the description\n%s\nwant\n%s", tt.of.Name(), tt.name, got, tt.want)
		}
	}
}
