# Two clusters of the EU with cheap electricity and room for the workload.
resource "scheduler_placement" "web" {
  name      = "web"
  namespace = "shop"

  number_of_clusters = 2
  label_constraints  = ["location in (DE, FR, PL)", "tier is not edge"]
  metric_constraints = ["electricity < 0.4"]
  resource_requests  = { cpu = "4", memory = "8Gi" }

  # Stay unless another cluster is better by a tenth, and then at most once in
  # ten minutes.
  min_improvement  = 0.1
  reschedule_after = "10m"

  # "for" is a word of Terraform's language: in an object it stands in quotes.
  wait = { "for" = "decided", on_timeout = "warning" }
}

# Every plan and apply says when there are too few.
check "web" {
  assert {
    condition     = length(scheduler_placement.web.clusters) == 2
    error_message = "The web shop needs two clusters."
  }
}

# What depends on the decision follows it: with keys that are known beforehand
# the plan works at any time.
resource "terraform_data" "release" {
  for_each = toset(["berlin", "paris", "warsaw"])

  input = {
    cluster  = each.key
    replicas = contains(scheduler_placement.web.clusters, each.key) ? 3 : 0
  }
}
