# The defaults: a Deployment goes to spot nodes, and of a StatefulSet more than half
# of the replicas to on-demand nodes.
output "defaults" {
  value = {
    web      = provider::scheduler::split_replicas("Deployment", 5, null, null)  # 0 on demand, 5 on spot
    database = provider::scheduler::split_replicas("StatefulSet", 5, null, null) # 3 and 2
  }
}

# 30 % of 5 are 1.5, rounded up: 2 on demand, 3 on spot.
output "percentage" {
  value = provider::scheduler::split_replicas("Deployment", 5, "custom", "30%")
}

# Where no webhook can be installed, a topology spread constraint comes near: 2 of 10
# on demand are a skew of 6.
output "topology_spread" {
  value = {
    maxSkew           = provider::scheduler::split_replicas("Deployment", 10, "custom", 2).max_skew
    minDomains        = 2
    topologyKey       = "node.kubernetes.io/capacity"
    whenUnsatisfiable = "DoNotSchedule"
  }
}
