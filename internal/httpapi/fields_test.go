package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The OpenAPI document describes every field as its tags do.
func TestFieldDescriptionsMatchTheirTags(t *testing.T) {
	type property struct {
		Description          string    `json:"description"`
		Default              any       `json:"default"`
		Enum                 []string  `json:"enum"`
		Minimum              *float64  `json:"minimum"`
		AdditionalProperties *property `json:"additionalProperties"`
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]property `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	a := startServer(t).do(http.MethodGet, openAPIPath, "")
	if err := json.Unmarshal(a.body, &document); err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || len(api.Fields(of)) == 0 {
			return
		}
		seen[of] = true
		for _, f := range api.Fields(of) {
			got, ok := document.Components.Schemas[of.Name()].Properties[f.Name]
			switch {
			case !ok:
				t.Errorf("%s has no property %s", of.Name(), f.Name)
			case !strings.HasPrefix(got.Description, f.Doc):
				t.Errorf("%s.%s has the description %q, but the field has %q", of.Name(), f.Name, got.Description, f.Doc)
			case f.DefaultBy != nil && !strings.HasSuffix(got.Description, f.DefaultBy.Sentence()):
				t.Errorf("%s.%s does not say: %s", of.Name(), f.Name, f.DefaultBy.Sentence())
			case (f.Default != "") != (got.Default != nil), len(f.Enum) != len(got.Enum):
				t.Errorf("%s.%s has the default %v and the values %q, but the field has %q and %q", of.Name(), f.Name, got.Default, got.Enum, f.Default, f.Enum)
			case f.Secret && !strings.Contains(got.Description, "Never returned."):
				t.Errorf("%s.%s does not say how the secret is kept: %s", of.Name(), f.Name, got.Description)
			}
			if f.Type.Kind() == reflect.Map && got.AdditionalProperties != nil {
				got.Minimum = got.AdditionalProperties.Minimum
			}
			if (f.Minimum != nil) != (got.Minimum != nil) || f.Minimum != nil && *f.Minimum != *got.Minimum {
				t.Errorf("%s.%s does not have the bounds of the field", of.Name(), f.Name)
			}
			visit(f.Type)
		}
	}
	for _, info := range api.Kinds {
		object := info.New()
		visit(reflect.TypeOf(object.SpecPart()))
		visit(reflect.TypeOf(object.StatusPart()))
	}
}

// Every parameter of a query says what it is for, whether its own tag says so or the field that it stands for.
func TestParametersAreDescribed(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ In, Name, Description string }
		}
	}
	a := startServer(t).do(http.MethodGet, openAPIPath, "")
	if err := json.Unmarshal(a.body, &document); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, operations := range document.Paths {
		for method, operation := range operations {
			for _, parameter := range operation.Parameters {
				seen++
				if parameter.In == "query" && parameter.Description == "" {
					t.Errorf("%s %s does not say what %s is for", method, path, parameter.Name)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("the document has no parameters")
	}
}
