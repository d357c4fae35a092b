# A rating of a cluster that is valid until a contract ends. A placement uses it
# with
#
#   { type = "addon", resource_name = "support", score_name = "grade" }
resource "scheduler_placement_score" "support" {
  cluster     = scheduler_cluster.berlin.name
  name        = "support"
  scores      = { grade = 80, price = -25 }
  valid_until = "2035-12-31T23:59:59+01:00"
}

# Scores are deleted with their cluster.
resource "scheduler_cluster" "berlin" {
  name = "berlin"
}
