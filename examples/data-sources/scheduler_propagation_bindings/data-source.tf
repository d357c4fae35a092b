# The workloads that a policy has claimed, and the ones that are waiting for room.
data "scheduler_propagation_bindings" "web" {
  name      = "web"
  namespace = "shop"
}

output "runs_on" {
  value = { for workload, b in data.scheduler_propagation_bindings.web.bindings : workload => b.clusters }
}

output "waiting" {
  value = { for workload, b in data.scheduler_propagation_bindings.web.bindings : workload => b.message if !b.scheduled }
}
