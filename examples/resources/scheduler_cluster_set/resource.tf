# Production clusters of the EU, for the namespaces of two teams. A cluster belongs
# to the set as soon as it has the labels.
resource "scheduler_cluster_set" "eu" {
  name       = "eu"
  namespaces = ["shop", "search"]

  selector = {
    match_labels      = { tier = "prod" }
    match_expressions = [{ key = "location", operator = "In", values = ["DE", "FR", "PL"] }]
  }
}

# Clusters by name, for everybody.
resource "scheduler_cluster_set" "edge" {
  name     = "edge"
  clusters = ["hamburg", "lyon"]
}

# An empty selector matches every cluster.
resource "scheduler_cluster_set" "all" {
  name     = "all"
  selector = {}
}
