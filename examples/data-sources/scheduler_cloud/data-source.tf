data "scheduler_cloud" "de" {
  name = "de"
}

# What is available, by region and availability zone.
output "available" {
  value = {
    for region in data.scheduler_cloud.de.status.regions : region.name => {
      for zone in region.zones : zone.name => zone.available
    }
  }
}

# The regions whose figures are not current, and why.
output "failing" {
  value = {
    for region in data.scheduler_cloud.de.status.regions : region.name => region.message
    if region.failures != null
  }
}
