data "scheduler_placement_explanation" "web" {
  name      = "web"
  namespace = "shop"
}

output "why" {
  value = {
    summary  = data.scheduler_placement_explanation.web.summary
    rejected = { for c in data.scheduler_placement_explanation.web.candidates : c.cluster => c.reason if c.reason != null }
    # The one condition without which most clusters would fit.
    nearest_miss = data.scheduler_placement_explanation.web.nearest_miss
    margin       = data.scheduler_placement_explanation.web.margin
  }
}
