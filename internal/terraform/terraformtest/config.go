// Package terraformtest is test code: Terraform values, written as JSON.
package terraformtest

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// ConfigValue returns a configuration from a document.
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
