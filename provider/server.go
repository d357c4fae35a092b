package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// NewServer returns a constructor of the provider as Terraform and OpenTofu talk to it.
func NewServer(version string) func() tfprotov6.ProviderServer {
	serve := providerserver.NewProtocol6(New(version)())
	return func() tfprotov6.ProviderServer { return protocolServer{serve()} }
}

// protocolServer mends what the framework does not take.
type protocolServer struct{ tfprotov6.ProviderServer }

// null is that value in MessagePack.
const null = 0xc0

// CallFunction implements tfprotov6.FunctionServer. OpenTofu sends a null argument as a
// value without any data, which the framework calls a bug of itself.
func (s protocolServer) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	for i, argument := range req.Arguments {
		if argument == nil || len(argument.MsgPack) == 0 && len(argument.JSON) == 0 {
			req.Arguments[i] = &tfprotov6.DynamicValue{MsgPack: []byte{null}}
		}
	}
	return s.ProviderServer.CallFunction(ctx, req)
}
