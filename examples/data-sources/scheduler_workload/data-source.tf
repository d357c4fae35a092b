# The binding of a workload that another configuration manages.
data "scheduler_workload" "web" {
  name      = "web"
  namespace = "shop"
  explain   = true
}

output "web" {
  value = {
    runs_on = data.scheduler_workload.web.clusters
    leaving = { for e in data.scheduler_workload.web.evictions : e.cluster => e.reason }
    policy  = data.scheduler_workload.web.policy
    group   = data.scheduler_workload.web.observed_affinity
    ill_on  = [for h in data.scheduler_workload.web.health : h.cluster if h.status == "unhealthy"]
    why     = data.scheduler_workload.web.summary
  }
}

# Why each cluster got its replicas, and why the others got none.
output "reasons" {
  value = { for c in data.scheduler_workload.web.explanation.candidates : c.cluster => c.reason }
}

# Progress of the split between on-demand and spot nodes, if one is requested.
output "split" {
  value = {
    for d in data.scheduler_workload.web.distribution :
    d.cluster => "${d.on_demand} of ${d.target_on_demand} on demand, ${d.spot} of ${d.target_spot} on spot: ${d.state}"
  }
}
