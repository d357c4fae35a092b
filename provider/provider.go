// Package provider is the Terraform provider of the scheduling server. Resources hold what the user
// requests and the resulting decision; everything that changes by itself (scores, reasons,
// conditions, times) is in data sources.
package provider

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// Address is the address of the provider in registries.
const Address = "registry.terraform.io/scheduler/scheduler"

var (
	_ provider.Provider              = (*Provider)(nil)
	_ provider.ProviderWithFunctions = (*Provider)(nil)

	_ provider.ProviderWithEphemeralResources = (*Provider)(nil)
)

// Provider implements the provider. NewServer creates it.
type Provider struct {
	version string
	// configured is the session, or nil before Configure.
	configured atomic.Pointer[terraform.Session]
}

// Metadata implements provider.Provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "scheduler"
	resp.Version = p.version
}

// Resources implements provider.Provider.
func (p *Provider) Resources(context.Context) []func() resource.Resource {
	var makers []func() resource.Resource
	for _, r := range resources() {
		makers = append(makers, r.New)
	}
	return makers
}

// resources describes all resources. It is computed once, because the framework asks for a resource
// with every request.
var resources = sync.OnceValue(func() []*terraform.Resource {
	return []*terraform.Resource{
		newClusterSetResource(),
		newClusterResource(),
		newCloudResource(),
		newOpenStackProjectResource(),
		newMagnumClusterResource(),
		newMetricsProviderResource(),
		newMetricResource(),
		newPlacementScoreResource(),
		newPlacementResource(),
		newWorkloadResource(),
		newPropagationPolicyResource(),
		newMoveWindowResource(),
		newRoleResource(),
		newRoleBindingResource(),
	}
})

// DataSources implements provider.Provider.
func (p *Provider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newClusterDataSource,
		newClustersDataSource,
		newClusterDistributionsDataSource,
		newCloudDataSource,
		newMagnumClusterDataSource,
		newOpenStackProjectsDataSource,
		newMetricDataSource,
		newPlacementDecisionsDataSource,
		newPlacementExplanationDataSource,
		newPlacementPreviewDataSource,
		newWorkloadDataSource,
		newPropagationBindingsDataSource,
		newPropagationPreviewDataSource,
		newSimulationDataSource,
		newServerDataSource,
	}
}

// EphemeralResources implements provider.ProviderWithEphemeralResources.
func (p *Provider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{newTokenEphemeralResource}
}

// Functions implements provider.ProviderWithFunctions.
func (p *Provider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		newMatchesFunction,
		newParseLabelConstraintFunction,
		newNormalizeFunction,
		newSplitReplicasFunction,
	}
}

// Schema implements provider.Provider.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Places workloads on a fleet of clusters by labels, live metrics and capacity. " +
			"A scheduling server keeps every decision current. This provider declares its objects " +
			"(clusters, metrics, placements) and makes its decisions available in Terraform.",
		Attributes: configurationAttributes(),
	}
}
