# How far the split is that main.tf asks for. In a configuration of its own: what is
# observed changes all the time, and has no place in plans that are to be empty.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace = "shop"
}

data "scheduler_workload" "web" {
  name = "web"
}

# Pods for on-demand and spot nodes that there are and should be, by cluster.
output "progress" {
  value = {
    for d in data.scheduler_workload.web.distribution :
    d.cluster => "${d.on_demand}/${d.spot} of ${d.target_on_demand}/${d.target_spot}: ${coalesce(d.message, d.state)}"
  }
}
