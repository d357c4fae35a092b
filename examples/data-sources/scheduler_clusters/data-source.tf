data "scheduler_clusters" "production_eu" {
  label_selector    = "tier=prod"
  label_constraints = ["location in (DE, FR, PL)"]
}

output "offline" {
  value = [for c in data.scheduler_clusters.production_eu.clusters : c.name if c.status.state != "online"]
}
