# What would move if the Berlin cluster were gone and a new one were added?
data "scheduler_simulation" "move" {
  delete = [{ kind = "cluster", name = "berlin" }]

  objects = [jsonencode({
    kind     = "cluster"
    metadata = { name = "oslo", labels = { location = "NO" } }
    spec     = { metrics = [{ name = "electricity", namespace = "oslo" }] }
  })]
}

output "moves" {
  value = { for c in data.scheduler_simulation.move.result.changes : join("/", compact([c.kind, c.namespace, c.name])) => "${join(", ", c.from)} -> ${join(", ", c.to)}" }
}

# What if the web shop had forty replicas? Its current binding is read from the
# server.
data "scheduler_simulation" "more" {
  objects = [jsonencode({
    kind     = "workload"
    metadata = { name = "web", namespace = "shop" }
    spec     = { api_version = "apps/v1", kind = "Deployment", replicas = 40 }
  })]
}

output "forty_replicas" {
  value = one([for c in data.scheduler_simulation.more.result.changes : c.to_replicas if c.kind == "workload"])
}
