package conformance

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

type toyIn struct {
	A Field[int]   `json:"a"`
	B Field[[]toy] `json:"b"`
}

type toy struct {
	C Field[string] `json:"c"`
	D Field[string] `json:"d"`
}

type toyOut struct {
	Sum   int            `json:"sum"`
	Names []string       `json:"names"`
	Of    map[string]int `json:"of"`
}

// toyCase is a case whose expectation a driver may compare more or less strictly.
var toyCase = Case{ID: "toy-1", Group: "toy", Raw: json.RawMessage(`{"id":"toy-1","in":{"a":1,"b":[{"c":"x","d":"y"}]},"out":{"sum":1,"names":["x","y"],"of":{"x":1}}}`)}

// TestUnreadFieldsAreFound checks that the suite reports fields of the input that no driver reads, at any depth, and
// fields that it does not know.
func TestUnreadFieldsAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		raw  string
		read func(in *toyIn)
		want []string
	}{
		"all fields read": {`{"a":1,"b":[{"c":"x","d":"y"}]}`, func(in *toyIn) {
			in.A.Get()
			for _, b := range in.B.Get() {
				b.C.Get()
				b.D.Get()
			}
		}, nil},
		"what is absent":   {`{"a":1}`, func(in *toyIn) { in.A.Get() }, nil},
		"one of them":      {`{"a":1,"b":[]}`, func(in *toyIn) { in.A.Get() }, []string{"in/b is not read"}},
		"asking is not it": {`{"a":1}`, func(in *toyIn) { in.A.Has() }, []string{"in/a is not read"}},
		"one further down": {`{"b":[{"c":"x","d":"y"}]}`, func(in *toyIn) { in.B.Get()[0].C.Get() }, []string{"in/b/0/d is not read"}},
	} {
		var in toyIn
		if err := Decode([]byte(tt.raw), &in); err != nil {
			t.Fatal(err)
		}
		tt.read(&in)
		if got := unread("in", reflect.ValueOf(&in)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
	}
	if got := unread("in", reflect.ValueOf(struct{ A int }{1})); len(got) != 1 || !strings.Contains(got[0], "is no Field") {
		t.Errorf("plain field: got %q", got)
	}
	for _, raw := range []string{`{"e":1}`, `{"b":[{"e":1}]}`} {
		if Decode([]byte(raw), &toyIn{}) == nil {
			t.Errorf("Decode() accepts the unknown field in %s", raw)
		}
	}
	var pair Pair[int]
	if Decode([]byte(`[1,2,3]`), &pair) == nil || Decode([]byte(`[1]`), &pair) == nil || Decode([]byte(`[1,2]`), &pair) != nil {
		t.Error("Decode() accepts a pair with another number of elements than two")
	}
}

// TestFieldsNotComparedAreFound checks that the suite reports parts of the expectation that the driver does not compare
// exactly.
func TestFieldsNotComparedAreFound(t *testing.T) {
	exact := toyOut{Sum: 1, Names: []string{"x", "y"}, Of: map[string]int{"x": 1}}
	for name, tt := range map[string]struct {
		agrees func(out *toyOut) bool
		want   []string // "path change"
	}{
		"all": {func(out *toyOut) bool { return reflect.DeepEqual(out, &exact) }, nil},
		"sum not compared": {func(out *toyOut) bool {
			return slices.Equal(out.Names, exact.Names) && reflect.DeepEqual(out.Of, exact.Of)
		}, []string{"/sum another value"}},
		"order not compared": {func(out *toyOut) bool {
			slices.Sort(out.Names)
			return reflect.DeepEqual(out, &exact)
		}, []string{"/names/1 another order"}},
		"only the listed ones compared": {func(out *toyOut) bool {
			for name, n := range out.Of {
				if exact.Of[name] != n {
					return false
				}
			}
			return out.Sum == 1 && slices.Equal(out.Names, exact.Names)
		}, []string{"/of/x without it"}},
		"more than the listed ones accepted": {func(out *toyOut) bool {
			for name, n := range exact.Of {
				if out.Of[name] != n {
					return false
				}
			}
			return out.Sum == 1 && slices.Equal(out.Names, exact.Names)
		}, []string{"/of one more"}},
	} {
		suite := Suite{Play: map[string]func(*T, *Played){"toy": Player(func(t *T, _ *toyIn, out *toyOut) {
			if !tt.agrees(out) {
				t.Fatal("the driver disagrees with its own case")
			}
		})}}
		expected, err := toyCase.expected()
		if err != nil {
			t.Fatal(err)
		}
		if wrong, _ := suite.play(t, toyCase, expected); len(wrong) > 0 {
			t.Fatalf("%s: %q", name, wrong)
		}
		variants, err := Variants(expected)
		if err != nil {
			t.Fatal(err)
		}
		var unnoticed []string
		for _, v := range variants {
			top := strings.Count(v.Path, "/") == 1
			if wrong, _ := suite.play(t, toyCase, v.Document); len(wrong) == 0 && (!top || v.Change != Less) {
				unnoticed = append(unnoticed, v.Path+" "+v.Change)
			}
		}
		if !slices.Equal(unnoticed, tt.want) {
			t.Errorf("%s: nobody noticed %q, want %q", name, unnoticed, tt.want)
		}
	}
	none := Suite{}
	if wrong, _ := none.play(t, toyCase, nil); len(wrong) != 1 {
		t.Errorf("case without a driver: got %q", wrong)
	}
	idle := Suite{Play: map[string]func(*T, *Played){"toy": func(*T, *Played) {}}}
	if _, ignored := idle.play(t, toyCase, nil); len(ignored) != 1 {
		t.Errorf("case with unread fields: got %q", ignored)
	}
}

// TestLoosePatterns checks that a pattern covers everything below it, or a single change if it says so.
func TestLoosePatterns(t *testing.T) {
	suite := Suite{Loose: map[string]string{"K*/scores": "all", "K2/names/* +another order": "order"}}
	for _, tt := range []struct {
		at, change string
		loose      bool
	}{
		{"K1/scores", Other, true},
		{"K1/scores/a", Less, true},
		{"K1/other", Other, false},
		{"V1/scores", Other, false},
		{"K2/names/0", Reordered, true},
		{"K2/names/0", Other, false},
		{"K1/names/0", Reordered, false},
	} {
		if got := suite.loose(tt.at, tt.change) != ""; got != tt.loose {
			t.Errorf("loose(%s, %s) = %t, want %t", tt.at, tt.change, got, tt.loose)
		}
	}
}
