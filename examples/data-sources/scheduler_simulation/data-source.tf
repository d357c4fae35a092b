# What would move if the Berlin cluster were switched off, and a new one were
# there?
data "scheduler_simulation" "move" {
  delete = [{ kind = "cluster", name = "berlin" }]

  objects = [jsonencode({
    kind     = "cluster"
    metadata = { name = "oslo", labels = { location = "NO" } }
    spec     = { metrics = [{ name = "electricity", namespace = "oslo" }] }
  })]
}

output "moves" {
  value = { for c in data.scheduler_simulation.move.result.changes : "${c.namespace}/${c.name}" => "${join(", ", c.from)} -> ${join(", ", c.to)}" }
}
