// Package terraformtest is test code: values of Terraform, written as the JSON that
// they stand for.
package terraformtest

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// ConfigValue makes a configuration of a document.
func ConfigValue(t testing.TB, typ tftypes.Type, document map[string]any) tftypes.Value {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := api.DecodeDocument(data)
	if err != nil {
		t.Fatal(err)
	}
	value, err := terraform.Value(typ, decoded)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
