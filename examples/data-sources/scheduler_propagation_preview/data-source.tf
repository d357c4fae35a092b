# Where would forty replicas run?
data "scheduler_propagation_preview" "more" {
  workload = {
    name        = "web"
    namespace   = "shop"
    api_version = "apps/v1"
    kind        = "Deployment"
    replicas    = 40
  }
}

output "forty_replicas" {
  value = {
    clusters = data.scheduler_propagation_preview.more.clusters
    because  = data.scheduler_propagation_preview.more.summary
  }
}

# What would a different division move?
data "scheduler_propagation_preview" "duplicated" {
  policy = {
    name               = "web"
    namespace          = "shop"
    resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
    placement          = { replica_scheduling = { type = "Duplicated" } }
  }
}

output "duplicated" {
  value = { for w in data.scheduler_propagation_preview.duplicated.workloads : w.workload => { from = w.current_replicas, to = w.replicas } }
}
