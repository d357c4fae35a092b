# Reads everything, and changes what runs where.
resource "scheduler_role" "deployer" {
  name = "deployer"
  rules = [
    { verbs = ["read"] },
    { verbs = ["write", "delete"], kinds = ["placement", "workload"] },
  ]
}

# Exports what clusters cost, and nothing else.
resource "scheduler_role" "billing" {
  name        = "billing"
  description = "nightly export"
  rules       = [{ verbs = ["read"], kinds = ["cluster", "cloud", "metric"] }]
}
