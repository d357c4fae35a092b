# From Friday evening to Monday morning nothing of the shop moves by itself.
resource "scheduler_move_window" "weekend" {
  name        = "weekend"
  namespace   = "shop"
  effect      = "deny"
  schedule    = "0 18 * * FRI"
  duration    = "60h"
  time_zone   = "Europe/Berlin"
  description = "weekend"
}

# What is marked as critical moves at night only.
resource "scheduler_move_window" "nights" {
  name           = "nights"
  effect         = "allow"
  schedule       = "0 22 * * *"
  duration       = "6h"
  label_selector = { match_labels = { tier = "critical" } }
}
