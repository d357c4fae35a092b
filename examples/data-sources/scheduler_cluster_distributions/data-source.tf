# The Deployments and StatefulSets of a cluster that are split between on-demand and
# spot nodes, whether requested by a scheduler_workload or by labels.
data "scheduler_cluster_distributions" "berlin" {
  cluster   = "berlin"
  namespace = "shop"
}

# The ones that have not reached their split, and why.
output "on_the_way" {
  value = {
    for w in data.scheduler_cluster_distributions.berlin.workloads :
    "${w.kind}/${w.name}" => "${w.on_demand} of ${w.target_on_demand} on demand, ${w.spot} of ${w.target_spot} on spot: ${coalesce(w.message, w.state)}"
    if w.state != "converged"
  }
}
