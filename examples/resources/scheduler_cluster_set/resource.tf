# Production clusters in the EU, for two teams. A cluster joins the set as soon as
# it has the labels.
resource "scheduler_cluster_set" "eu" {
  name       = "eu"
  namespaces = ["shop", "search"]

  selector = {
    match_labels      = { tier = "prod" }
    match_expressions = [{ key = "location", operator = "In", values = ["DE", "FR", "PL"] }]
  }
}

# A list of clusters, for everybody.
resource "scheduler_cluster_set" "edge" {
  name     = "edge"
  clusters = ["hamburg", "lyon"]
}

# An empty selector matches every cluster.
resource "scheduler_cluster_set" "all" {
  name     = "all"
  selector = {}
}
