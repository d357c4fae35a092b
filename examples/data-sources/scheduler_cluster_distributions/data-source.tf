# The Deployments and StatefulSets that are split over the on-demand and spot nodes
# of a cluster, whether a scheduler_workload or labels in the cluster ask for it.
data "scheduler_cluster_distributions" "berlin" {
  cluster   = "berlin"
  namespace = "shop"
}

# Those that do not have their split, and what is in the way.
output "on_the_way" {
  value = {
    for w in data.scheduler_cluster_distributions.berlin.workloads :
    "${w.kind}/${w.name}" => "${w.on_demand} of ${w.target_on_demand} on demand, ${w.spot} of ${w.target_spot} on spot: ${coalesce(w.message, w.state)}"
    if w.state != "converged"
  }
}
