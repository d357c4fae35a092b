# The decision of a placement that another configuration manages.
data "scheduler_placement_decisions" "web" {
  name      = "web"
  namespace = "shop"
}

output "web" {
  value = {
    scores = { for d in data.scheduler_placement_decisions.web.decisions : d.cluster => d.score }
    groups = [for g in data.scheduler_placement_decisions.web.decision_groups : g.clusters]
    since  = data.scheduler_placement_decisions.web.scheduled_at
  }
}
