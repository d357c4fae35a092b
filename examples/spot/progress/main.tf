# Progress of the split that main.tf asks for. It is in a separate configuration
# because the observed state changes all the time and would show up in every plan.

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

# Actual and wanted pods on on-demand and spot nodes by cluster.
output "progress" {
  value = {
    for d in data.scheduler_workload.web.distribution :
    d.cluster => "${d.on_demand}/${d.spot} of ${d.target_on_demand}/${d.target_spot}: ${coalesce(d.message, d.state)}"
  }
}
