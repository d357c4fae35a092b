# Know the decision during the plan. The preview asks the server for it, and the
# placement commits exactly that decision.
locals {
  checkout = {
    name               = "checkout"
    namespace          = "shop"
    number_of_clusters = 2
    label_constraints  = ["location in (DE, FR)"]
  }
}

data "scheduler_placement_preview" "checkout" {
  name               = local.checkout.name
  namespace          = local.checkout.namespace
  number_of_clusters = local.checkout.number_of_clusters
  label_constraints  = local.checkout.label_constraints
}

resource "scheduler_placement" "checkout" {
  name               = local.checkout.name
  namespace          = local.checkout.namespace
  number_of_clusters = local.checkout.number_of_clusters
  label_constraints  = local.checkout.label_constraints

  preview_token_wo = data.scheduler_placement_preview.checkout.token
}

# One release per chosen cluster, created in the same apply as the placement.
resource "terraform_data" "release_of_checkout" {
  for_each = toset(scheduler_placement.checkout.clusters)

  input = each.key
}
