package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPlacementScoreResource() *terraform.Resource {
	return &terraform.Resource{
		Kind: api.KindPlacementScore,
		Description: "A set of scores for one cluster. Placements rank clusters by such a score with a prioritizer of type `addon`. A cluster whose score is missing or has expired counts as 0. " +
			"Agents can write the same objects through the API (`PUT /v1/clusters/{cluster}/placement-scores/{name}`). Let only Terraform or only agents write an object: Terraform reverts changes made by agents.",
		Attributes: terraform.SpecAttributes(api.KindPlacementScore),
	}
}
