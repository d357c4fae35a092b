# The defaults: a Deployment runs on spot nodes; more than half of a StatefulSet's
# replicas run on on-demand nodes.
output "defaults" {
  value = {
    web      = provider::scheduler::split_replicas("Deployment", 5, null, null)  # 0 on demand, 5 on spot
    database = provider::scheduler::split_replicas("StatefulSet", 5, null, null) # 3 and 2
  }
}

# 30% of 5 is 1.5, rounded up: 2 on demand, 3 on spot.
output "percentage" {
  value = provider::scheduler::split_replicas("Deployment", 5, "custom", "30%")
}

# If you cannot install a webhook, a topology spread constraint comes close: 2 of 10
# on demand give a skew of 6.
output "topology_spread" {
  value = {
    maxSkew           = provider::scheduler::split_replicas("Deployment", 10, "custom", 2).max_skew
    minDomains        = 2
    topologyKey       = "node.kubernetes.io/capacity"
    whenUnsatisfiable = "DoNotSchedule"
  }
}
