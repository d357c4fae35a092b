data "scheduler_cloud" "de" {
  name = "de"
}

# Available resources by region and availability zone.
output "available" {
  value = {
    for region in data.scheduler_cloud.de.status.regions : region.name => {
      for zone in region.zones : zone.name => zone.available
    }
  }
}

# Regions that could not be queried, and why.
output "failing" {
  value = {
    for region in data.scheduler_cloud.de.status.regions : region.name => region.message
    if region.failures != null
  }
}
