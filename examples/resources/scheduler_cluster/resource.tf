resource "scheduler_cluster" "berlin" {
  name           = "berlin"
  labels         = { location = "DE", tier = "prod" }
  cloud_provider = "metal"
  region         = "eu-central"
  zones          = ["a", "b"]

  # Facts about the cluster that placements can match with claim selectors.
  claims = { "kubernetes.io/version" = "1.34.1", gpu = "h100" }

  # Only placements that tolerate this taint can use the cluster.
  taints = [{ key = "dedicated", value = "training", effect = "NoSelect" }]

  # The metrics that rate the cluster, and how much each one counts.
  metrics = [
    { name = scheduler_metric.electricity.name, namespace = scheduler_metric.electricity.namespace, weight = 3 },
    { name = "latency", namespace = "berlin" },
  ]

  allocatable = { cpu = "64", memory = "256Gi" }

  health = {
    url      = "https://berlin.example.com:6443/readyz"
    interval = "15s"
  }

  # Write-only: it is in no plan and no state. Change the version to send a new
  # value.
  kubernetes = { kubeconfig_wo = var.kubeconfig, kubeconfig_wo_version = 1 }

  # Split workloads between the cluster's on-demand and spot nodes.
  spot = {
    enabled       = true
    node_type_key = "karpenter.sh/capacity-type"
  }

  timeouts = { create = "1m" }
}

# Each site has a namespace for its metrics. A placement's constraint "electricity <
# 0.4" then refers to each cluster's own metric of that name.
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

# A cluster owned by two namespaces. Nobody else can see it.
resource "scheduler_cluster" "vault" {
  name        = "vault"
  namespaces  = ["payments", "ledger"]
  region      = "eu-central"
  allocatable = { cpu = "32", memory = "128Gi" }
}
