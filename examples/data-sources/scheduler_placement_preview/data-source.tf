# The preview and the placement use the same attributes.
locals {
  web = {
    name               = "web"
    namespace          = "shop"
    number_of_clusters = 1
  }
}

data "scheduler_placement_preview" "web" {
  name               = local.web.name
  namespace          = local.web.namespace
  number_of_clusters = local.web.number_of_clusters
}

output "would_run_on" {
  value = data.scheduler_placement_preview.web.clusters
}

output "because" {
  value = data.scheduler_placement_preview.web.summary
}
