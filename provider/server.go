package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// NewServer returns a constructor of the provider's protocol server.
func NewServer(version string) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer {
		p := &Provider{version: version}
		return terraform.NewServer(providerserver.NewProtocol6(p)(), resources(), p.configured.Load)
	}
}
