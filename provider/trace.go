package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Traced makes what Terraform asks of a provider a part of the trace of run, from where the client passes it on to the
// server. Terraform itself does not tell providers which trace it records.
func Traced(run context.Context, server func() tfprotov6.ProviderServer) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer { return &traced{server(), tracing.Continue(run)} }
}

// traced is a provider whose calls are parts of a trace.
type traced struct {
	tfprotov6.ProviderServer
	within func(context.Context) context.Context
}

// typeKey is the type of a resource or data source.
const typeKey = "terraform.type"

func call[Q, R any](ctx context.Context, t *traced, name, typeName string, do func(context.Context, Q) (R, error), request Q) (R, error) {
	ctx, span := tracing.Start(t.within(ctx), name)
	span.Text(typeKey, typeName)
	response, err := do(ctx, request)
	span.End(err)
	return response, err
}

// ConfigureProvider implements tfprotov6.ProviderServer.
func (t *traced) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return call(ctx, t, "ConfigureProvider", "", t.ProviderServer.ConfigureProvider, req)
}

// ReadResource implements tfprotov6.ResourceServer.
func (t *traced) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return call(ctx, t, "ReadResource", req.TypeName, t.ProviderServer.ReadResource, req)
}

// PlanResourceChange implements tfprotov6.ResourceServer.
func (t *traced) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return call(ctx, t, "PlanResourceChange", req.TypeName, t.ProviderServer.PlanResourceChange, req)
}

// ApplyResourceChange implements tfprotov6.ResourceServer.
func (t *traced) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return call(ctx, t, "ApplyResourceChange", req.TypeName, t.ProviderServer.ApplyResourceChange, req)
}

// ImportResourceState implements tfprotov6.ResourceServer.
func (t *traced) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return call(ctx, t, "ImportResourceState", req.TypeName, t.ProviderServer.ImportResourceState, req)
}

// ReadDataSource implements tfprotov6.DataSourceServer.
func (t *traced) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return call(ctx, t, "ReadDataSource", req.TypeName, t.ProviderServer.ReadDataSource, req)
}
