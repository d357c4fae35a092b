package terraform_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// FuzzImportID checks that an ID either names an object, whose ID it then equals, or gives an error with the expected
// form.
func FuzzImportID(f *testing.F) {
	for _, seed := range []string{"web", "shop/web", "/", "a/b/c", "", "shop/"} {
		f.Add(seed)
	}
	resources := objectResources(f)
	f.Fuzz(func(t *testing.T, id string) {
		for _, r := range resources {
			key, err := r.ParseImportID(id)
			var wrong *terraform.ImportIDError
			switch {
			case errors.As(err, &wrong):
			case err != nil:
				t.Errorf("%s %q: %v", r.Kind, id, err)
			case key.Path() != id && (r.Scope() != api.Namespaced || key.Path() != api.DefaultNamespace+"/"+id):
				t.Errorf("%s %q was read as object %s", r.Kind, id, key)
			}
		}
	})
}

// FuzzTerraformValue checks that a document that fits a type stays the same after a round trip, as far as the type
// contains it, and that one that does not fit is an error.
func FuzzTerraformValue(f *testing.F) {
	f.Add(`{"name":"east","labels":{"a":"b"},"zones":["a"],"metrics":[{"name":"m","weight":0.1}]}`)
	f.Add(`{"name":null,"paused":true,"health":{"failure_threshold":3}}`)
	f.Add(`{"metrics":[{"name":"m","weight":1e999},{"name":"n","weight":1e-999}]}`)
	f.Add(`{"metrics":[{"name":"m","weight":1e99999999999}]}`)
	r := resourceOf(f, api.KindCluster)
	typ := schemaOf(context.Background(), r).Type().TerraformType(context.Background())
	f.Fuzz(func(t *testing.T, text string) {
		document, err := api.DecodeDocument([]byte(text))
		if err != nil {
			return
		}
		value, err := terraform.Value(typ, document)
		if err != nil {
			return
		}
		var d terraform.ConfigDocument
		back, err := d.Read(value, path.Empty())
		if err != nil {
			t.Fatal(err)
		}
		again, err := terraform.Value(typ, back)
		if err != nil {
			t.Fatalf("%s was converted to %v and back: %v", text, back, err)
		}
		if len(d.Unknown) > 0 || !sameNumbers(value, again) {
			t.Errorf("%s is %s, but %s after a round trip", text, value, again)
		}
	})
}

// sameNumbers compares values whose numbers may differ in digits beyond the precision of a float64.
func sameNumbers(a, b tftypes.Value) bool {
	equal := true
	_, err := tftypes.Transform(a, func(p *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		other, _, err := tftypes.WalkAttributePath(b, p)
		if err != nil {
			return v, err
		}
		w, ok := other.(tftypes.Value)
		equal = equal && ok
		switch {
		case v.Type().Is(tftypes.Number) && !v.IsNull() && !w.IsNull():
			equal = equal && terraform.KeepSpelling(w, v).Equal(v)
		case v.Type().Is(tftypes.Number), v.Type().Is(tftypes.String), v.Type().Is(tftypes.Bool):
			equal = equal && v.Equal(w)
		}
		return v, nil
	})
	return equal && err == nil
}
