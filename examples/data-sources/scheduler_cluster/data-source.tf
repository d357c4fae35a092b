data "scheduler_cluster" "berlin" {
  name = "berlin"
}

output "berlin" {
  value = {
    state     = data.scheduler_cluster.berlin.status.state
    available = data.scheduler_cluster.berlin.status.available
    metrics   = { for m in data.scheduler_cluster.berlin.status.metrics : m.name => m.value }
  }
}
