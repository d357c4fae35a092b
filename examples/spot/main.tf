# Two Kubernetes clusters with on-demand and spot nodes. A shop and its database run
# on both; of each, so many pods stay on on-demand nodes that the end of all spot
# nodes at once does no harm. Neither the Deployments nor the Kubernetes scheduler are
# touched: a webhook of the server says for which nodes each new pod is, and pods that
# are on the wrong ones are replaced, one at a time.
#
# The server has to be reachable by the clusters:
#   scheduler-server serve … --webhook-listen 0.0.0.0:8666 --webhook-url https://scheduler.example.com:8666

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace = "shop"
}

variable "kubeconfigs" {
  description = "Kubeconfig by cluster, of a user with the rights that the guide on spot nodes lists."
  type        = map(string)
  ephemeral   = true
  default     = {}
}

variable "spot" {
  description = "Split workloads over the nodes of the clusters. Without it their pods stay where they are."
  type        = bool
  default     = true
}

variable "on_demand" {
  description = "Pods of the shop that stay on on-demand nodes, over both clusters together: a number, or a percentage of those in each."
  type        = string
  default     = "4"
}

locals {
  # How the nodes of each cluster say which they are.
  clusters = {
    berlin = "karpenter.sh/capacity-type"
    paris  = "eks.amazonaws.com/capacityType"
  }
}

resource "scheduler_cluster" "site" {
  for_each = local.clusters

  name = each.key
  # Change the version with the kubeconfigs.
  kubernetes = { kubeconfig_wo = lookup(var.kubeconfigs, each.key, null), kubeconfig_wo_version = 1 }

  spot = {
    enabled       = var.spot
    node_type_key = each.value
  }
}

# Both sites get the same part of every workload.
resource "scheduler_propagation_policy" "everything" {
  name = "everything"

  resource_selectors = [
    { api_version = "apps/v1", kind = "Deployment" },
    { api_version = "apps/v1", kind = "StatefulSet" },
  ]

  placement = {
    cluster_affinity   = { cluster_names = [for c in scheduler_cluster.site : c.name] }
    replica_scheduling = { type = "Divided" }
  }
}

# First the replicas are divided over the clusters, then those of each are split.
resource "scheduler_workload" "web" {
  name        = "web"
  api_version = "apps/v1"
  kind        = "Deployment"
  replicas    = 10

  distribution = {
    mode             = "custom"
    custom_on_demand = var.on_demand
  }

  depends_on = [scheduler_propagation_policy.everything]
}

# The default of a StatefulSet: more than half of its replicas, in each cluster.
resource "scheduler_workload" "database" {
  name         = "database"
  api_version  = "apps/v1"
  kind         = "StatefulSet"
  replicas     = 6
  distribution = {}

  depends_on = [scheduler_propagation_policy.everything]
}

# Pods for on-demand nodes, and for spot nodes, by cluster: the decision.
output "on_demand" {
  value = { web = scheduler_workload.web.on_demand, database = scheduler_workload.database.on_demand }
}

output "spot" {
  value = { web = scheduler_workload.web.spot, database = scheduler_workload.database.spot }
}

# A warning in every plan while the pods are not there yet. How far they are is in
# progress/main.tf.
data "scheduler_workload" "web" {
  name       = scheduler_workload.web.name
  depends_on = [scheduler_workload.web]
}

check "split" {
  assert {
    condition     = one([for c in data.scheduler_workload.web.conditions : c.status if c.type == "Distributed"]) == "True"
    error_message = "The pods of the shop are not split as wanted yet."
  }
}
