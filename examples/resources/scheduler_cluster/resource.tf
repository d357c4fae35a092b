resource "scheduler_cluster" "berlin" {
  name           = "berlin"
  labels         = { location = "DE", tier = "prod" }
  cloud_provider = "metal"
  region         = "eu-central"
  zones          = ["a", "b"]

  # Facts about the cluster, which the claim selectors of placements match.
  claims = { "kubernetes.io/version" = "1.34.1", gpu = "h100" }

  # Only placements that tolerate it get on the cluster.
  taints = [{ key = "dedicated", value = "training", effect = "NoSelect" }]

  # What rates the cluster, and how much each metric counts.
  metrics = [
    { name = scheduler_metric.electricity.name, namespace = scheduler_metric.electricity.namespace, weight = 3 },
    { name = "latency", namespace = "berlin" },
  ]

  allocatable = { cpu = "64", memory = "256Gi" }

  health = {
    url      = "https://berlin.example.com:6443/readyz"
    interval = "15s"
  }

  # Write-only: in no plan and no state. Change the version with the value.
  kubernetes = { kubeconfig_wo = var.kubeconfig, kubeconfig_wo_version = 1 }

  # Split workloads over the on-demand and spot nodes of the cluster.
  spot = {
    enabled       = true
    node_type_key = "karpenter.sh/capacity-type"
  }

  timeouts = { create = "1m" }
}

# The metrics of a site have a namespace of their own. A placement's constraint
# "electricity < 0.4" then means each cluster's own metric of that name.
resource "scheduler_metric" "electricity" {
  name             = "electricity"
  namespace        = "berlin"
  min              = 0
  max              = 0.5
  direction        = "descending"
  metrics_provider = { name = "prometheus", metric = "electricity_price" }
}

variable "kubeconfig" {
  type      = string
  ephemeral = true
  default   = null
}

# A cluster that belongs to two namespaces: nobody else sees it.
resource "scheduler_cluster" "vault" {
  name        = "vault"
  namespaces  = ["payments", "ledger"]
  region      = "eu-central"
  allocatable = { cpu = "32", memory = "128Gi" }
}
