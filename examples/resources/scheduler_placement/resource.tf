# Two clusters in the EU with cheap electricity and enough free capacity.
resource "scheduler_placement" "web" {
  name      = "web"
  namespace = "shop"

  number_of_clusters = 2
  label_constraints  = ["location in (DE, FR, PL)", "tier is not edge"]
  metric_constraints = ["electricity < 0.4"]
  resource_requests  = { cpu = "4", memory = "8Gi" }

  # Move only if another cluster is better by more than a tenth, and at most once
  # every ten minutes.
  min_improvement  = 0.1
  reschedule_after = "10m"

  # "for" is a keyword in Terraform, so it must be quoted in an object.
  wait = { "for" = "decided", on_timeout = "warning" }
}

# Every plan and apply warns if there are too few clusters.
check "web" {
  assert {
    condition     = length(scheduler_placement.web.clusters) == 2
    error_message = "The web shop needs two clusters."
  }
}

# Resources that use the decision follow it. With keys that are known in advance,
# every plan works.
resource "terraform_data" "release" {
  for_each = toset(["berlin", "paris", "warsaw"])

  input = {
    cluster  = each.key
    replicas = contains(scheduler_placement.web.clusters, each.key) ? 3 : 0
  }
}
