package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPlacementScoreResource() *terraform.Resource {
	return &terraform.Resource{
		Kind: api.KindPlacementScore,
		Description: "A bundle of scores of one cluster. A placement ranks clusters by one of them with a prioritizer of type `addon`; a cluster without the score, or with one that has expired, counts as 0. " +
			"Agents write the same objects over the API (`PUT /v1/clusters/{cluster}/placement-scores/{name}`): leave a bundle to one of the two, for Terraform puts back what differs from its configuration.",
		Attributes: terraform.SpecAttributes(api.KindPlacementScore),
	}
}
