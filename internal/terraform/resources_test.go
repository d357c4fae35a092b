package terraform_test

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// Documents in tests are written in the form of their JSON.
type (
	doc  = map[string]any
	list = []any
)

var validWorkload = doc{"name": "web", "namespace": "shop", "api_version": "apps/v1", "kind": "Deployment", "replicas": 3}

// objectResources returns the provider's resources by kind.
func objectResources(t testing.TB) map[api.Kind]*terraform.Resource {
	t.Helper()
	resources := map[api.Kind]*terraform.Resource{}
	for _, newResource := range (&provider.Provider{}).Resources(context.Background()) {
		r, ok := newResource().(*terraform.Resource)
		if !ok {
			t.Fatalf("%T is not a terraform.Resource", newResource())
		}
		resources[r.Kind] = r
	}
	for _, info := range api.Kinds {
		if resources[info.Kind] == nil {
			t.Errorf("no resource for kind %s", info.Kind)
		}
	}
	return resources
}

// resourceOf returns the resource of a kind.
func resourceOf(t testing.TB, kind api.Kind) *terraform.Resource {
	t.Helper()
	return objectResources(t)[kind]
}

func schemaOf(ctx context.Context, r *terraform.Resource) schema.Schema {
	var resp resource.SchemaResponse
	r.Schema(ctx, resource.SchemaRequest{}, &resp)
	return resp.Schema
}
