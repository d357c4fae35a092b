# What moved because a cluster went offline?
data "scheduler_decision_history" "outages" {
  namespace = "shop"
  cause     = "cluster_offline"
  since     = "2026-03-03T00:00:00Z"
  until     = "2026-03-04T00:00:00Z"
}

output "moved" {
  value = [for e in data.scheduler_decision_history.outages.entries : {
    at      = e.time
    what    = "${e.object.kind} ${e.object.name}"
    from    = try(e.before.clusters, [])
    to      = try(e.after.clusters, [])
    because = e.cause.object.name
  }]
}
