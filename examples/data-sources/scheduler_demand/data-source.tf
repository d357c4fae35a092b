data "scheduler_demand" "shop" {
  namespace = "shop"
}

output "missing" {
  value = { for name, c in data.scheduler_demand.shop.clusters : name => c.labels if c.state == "open" }
}
