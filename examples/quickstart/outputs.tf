data "scheduler_placement_decisions" "all" {
  for_each = { web = scheduler_placement.web, batch = scheduler_placement.batch }

  name      = each.value.name
  namespace = each.value.namespace
}

data "scheduler_placement_explanation" "all" {
  for_each = { web = scheduler_placement.web, batch = scheduler_placement.batch }

  name      = each.value.name
  namespace = each.value.namespace
}

output "decisions" {
  description = "Where each workload runs, with the score of each cluster."
  value       = { for name, p in data.scheduler_placement_decisions.all : name => { for d in p.decisions : d.cluster => d.score } }
}

output "why" {
  description = "An explanation of each decision."
  value       = { for name, p in data.scheduler_placement_explanation.all : name => p.summary }
}
