# Workloads of two namespaces move at night only, in the time of Berlin. Moves that
# nothing forces wait for the night, and are then decided with the figures of then.
resource "scheduler_move_window" "nights" {
  name        = "nights"
  kind        = "allow"
  schedule    = "0 22 * * *"
  duration    = "6h"
  time_zone   = "Europe/Berlin"
  description = "agreed with the shop team"

  selector = { namespaces = ["shop", "bank"] }
}

# Nothing leaves the clusters in Frankfurt because of metrics while the books are closed.
resource "scheduler_move_window" "closing" {
  name      = "closing"
  namespace = "bank"
  kind      = "deny"
  schedule  = "0 0 1 * *"
  duration  = "72h"
  reasons   = ["metric", "score"]

  from = { label_selector = { match_labels = { location = "frankfurt" } } }
}
