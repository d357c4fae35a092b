package jsonform

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// standard returns the output of encoding/json.
func standard(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(buffer.String(), "\n"), err
}

func check(t *testing.T, value any) {
	t.Helper()
	want, wantErr := standard(value)
	want = strings.ReplaceAll(want, `\ufffd`, "\ufffd")
	got, err := Marshal(value)
	buffer := bytes.NewBufferString("before ")
	switch writeErr := Write(buffer, value); {
	case (err == nil) != (wantErr == nil), (writeErr == nil) != (wantErr == nil):
		t.Errorf("%#v: errors %v and %v, want %v", value, err, writeErr, wantErr)
	case err == nil && (string(got) != want || buffer.String() != "before "+want):
		t.Errorf("%#v:\n got %s\nwant %s", value, got, want)
	}
}

type (
	byValue   struct{ text string }
	byPointer struct{ text string }
	byText    string
	ownZero   struct{ Value int }
	refZero   struct{ Value int }
	failing   struct{}
	embedded  struct{ Inner int }
)

func (b byValue) MarshalJSON() ([]byte, error)    { return []byte(` {"is": "` + b.text + `"} `), nil }
func (b *byPointer) MarshalJSON() ([]byte, error) { return []byte(`"` + b.text + `"`), nil }
func (b byText) MarshalText() ([]byte, error)     { return []byte("<" + b + ">"), nil }
func (z ownZero) IsZero() bool                    { return z.Value == 7 }
func (z *refZero) IsZero() bool                   { return z.Value == 7 }
func (failing) MarshalJSON() ([]byte, error)      { return nil, errors.New("it fails") }

type recursive struct {
	Name     string                `json:"name"`
	Children []recursive           `json:"children,omitempty"`
	Parent   *recursive            `json:"parent,omitempty"`
	ByName   map[string]*recursive `json:"by_name,omitempty"`
}

// TestWriteIsAsStandard compares with encoding/json whatever its documentation says of
// types and tags.
func TestWriteIsAsStandard(t *testing.T) {
	t.Parallel()
	name, zero, at := "x", 0, time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))
	for _, value := range []any{
		nil, true, 1, int8(-1), uint16(2), uint64(math.MaxUint64), float32(0.1), 1.0, 1e-7, 1.5e-9, 1e20, 1e21, -1e-300, math.MaxFloat64, math.Copysign(0, -1),
		math.NaN(), math.Inf(-1), "", "ä\u2028\u2029\"\\/<>&\b\f\n\r\t\x00\x1f\x7f", "\xff\xc3(", "\xe2\x80",
		[]string(nil), []string{}, []byte("bytes"), []byte(nil), [2]int{1, 2}, []any{1, "a", nil, map[string]any{"b": 1, "a": []int{}}},
		map[string]string(nil), map[string]string{}, map[string]string{"b": "1", "a": "<"}, map[string]int(nil), map[string]int{}, map[string]int{"b": 1, "a": 2, "<": 3}, map[int]string{2: "b", 1: "a"},
		(*int)(nil), &zero, new(&name), at, &at, time.Time{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), at.In(time.FixedZone("", 24*3600)),
		json.RawMessage(` {"a" : 1}`), json.RawMessage(nil), json.RawMessage("{"),
		byValue{"v"}, &byValue{"v"}, (*byValue)(nil), byPointer{"p"}, &byPointer{"p"}, byText("t"), failing{}, []failing{{}}, map[string]any{"f": failing{}},
		struct {
			V  byValue
			P  byPointer
			PP *byPointer
			T  byText
			I  any
			O  api.Object
		}{},
		&struct {
			P  byPointer
			PP *byPointer
			S  []byPointer
			M  map[string]byPointer
			I  any
		}{P: byPointer{"p"}, PP: &byPointer{"q"}, S: []byPointer{{"s"}}, M: map[string]byPointer{"k": {"m"}}, I: byPointer{"i"}},
		struct {
			A int `json:"a,omitempty"`
			b int
			C string            `json:"-"`
			D string            `json:"-,"` //nolint:staticcheck // a field of this name
			E map[string]string `json:"e,omitempty"`
			F *string           `json:",omitempty"`
			G time.Time         `json:"g,omitempty"`
			H time.Time         `json:"h,omitzero"`
			I ownZero           `json:"i,omitzero"`
			J refZero           `json:"j,omitzero"`
			K *ownZero          `json:"k,omitzero"`
			L [0]int            `json:"l,omitempty"`
			M any               `json:"m,omitempty"`
			N float64           `json:"n,omitempty"`
			O []int             `json:"o,omitempty"`
			P []int             `json:"p,omitzero"`
			Q bool              `json:"q,omitempty"`
		}{b: 1, I: ownZero{7}, J: refZero{7}, K: &ownZero{7}, P: []int{}, M: 0},
		struct {
			A int    `json:"a,string"`
			B string `json:"b,string"`
		}{1, "x"},
		struct {
			embedded
			Outer int
		}{embedded{1}, 2},
		struct {
			C int `json:"ä"`
			D int `json:"a b"`
			E int `json:"a.b$%"`
		}{3, 4, 5},
		// If two fields have the same name, neither is written.
		reflect.New(reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
		})).Interface(),
		recursive{"a", []recursive{{Name: "b"}}, &recursive{Name: "c"}, map[string]*recursive{"d": {Name: "d"}, "e": nil}},
	} {
		check(t, value)
	}
}

// TestWriteWritesObjectsAsStandard does so for the objects of every kind, with random
// values in all fields.
func TestWriteWritesObjectsAsStandard(t *testing.T) {
	t.Parallel()
	for _, info := range api.Kinds {
		t.Run(string(info.Kind), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			for range 200 {
				object := info.New()
				fill(r, reflect.ValueOf(object), 0)
				check(t, object)
			}
		})
	}
}

// fill sets everything in a value to random values.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	texts := []string{"", "a", "web <&> \"x\"", "ä\u2028", "line\nbreak", "\xff"}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(4e9), r.Int64N(1e9)).UTC()))
		return
	}
	some := r.IntN(3)
	if depth > 12 {
		some = 0
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && some > 0 {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), some, some))
		for i := range some {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range some {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(3) - 1)
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -0.25, 1e-9, 1e22, r.Float64()}[r.IntN(6)])
	case reflect.Bool:
		v.SetBool(some == 0)
	default: // objects contain no other kinds, or they stay zero
	}
}

// BenchmarkWrite writes a decided placement, with this package and with the standard one.
func BenchmarkWrite(b *testing.B) {
	now, n := time.Now().UTC(), int64(3)
	p := &api.Placement{Kind: api.KindPlacement, Metadata: api.Metadata{
		Name: "web", Namespace: "shop", Labels: map[string]string{"team": "a"}, UID: "0123456789abcdef0123456789abcdef",
		Generation: 1, ResourceVersion: "123456", CreatedAt: &now, ModifiedAt: &now,
	}}
	p.Spec.NumberOfClusters, p.Spec.LabelConstraints = &n, []string{"location is DE", "tier != edge"}
	p.SetDefaults()
	p.Status = api.PlacementStatus{ObservedGeneration: 1, Clusters: []string{"c1", "c2", "c3"}, ScheduledAt: &now, DecisionRevision: 1}
	for i, name := range p.Status.Clusters {
		p.Status.Decisions = append(p.Status.Decisions, api.Decision{Cluster: name, Score: 1 / float64(i+3), Rank: int64(i + 1), Since: &now})
	}
	for _, condition := range []string{api.ConditionScheduled, api.ConditionSatisfied} {
		api.SetCondition(&p.Status.Conditions, api.Condition{Type: condition, Status: api.ConditionTrue, Reason: "Decided", Message: "3 of 3 clusters"}, now)
	}
	b.Run("here", func(b *testing.B) {
		var buffer bytes.Buffer
		cputime.Measure(b, func() { buffer.Reset(); _ = Write(&buffer, p) })
	})
	b.Run("standard", func(b *testing.B) {
		var buffer bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		cputime.Measure(b, func() { buffer.Reset(); _ = encoder.Encode(p) })
	})
}
