# Two Kubernetes clusters with on-demand and spot nodes. A shop and its database run
# on both. Enough pods of each stay on on-demand nodes to survive the loss of all
# spot nodes at once. Neither the Deployments nor the Kubernetes scheduler change: a
# webhook on the server assigns each new pod to a node type, and pods on the wrong
# type are replaced one at a time.
#
# The clusters must be able to reach the server:
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
  description = "Kubeconfig by cluster. The user needs the permissions in the guide on spot nodes."
  type        = map(string)
  ephemeral   = true
  default     = {}
}

variable "spot" {
  description = "Whether to split workloads between node types. If false, pods stay where they are."
  type        = bool
  default     = true
}

variable "on_demand" {
  description = "Pods of the shop on on-demand nodes: a number for both clusters together, or a percentage of the pods in each."
  type        = string
  default     = "4"
}

locals {
  # The node label that tells on-demand and spot nodes apart.
  clusters = {
    berlin = "karpenter.sh/capacity-type"
    paris  = "eks.amazonaws.com/capacityType"
  }
}

resource "scheduler_cluster" "site" {
  for_each = local.clusters

  name = each.key
  # Change the version to send new kubeconfigs.
  kubernetes = { kubeconfig_wo = lookup(var.kubeconfigs, each.key, null), kubeconfig_wo_version = 1 }

  spot = {
    enabled       = var.spot
    node_type_key = each.value
  }
}

# Both sites get an equal share of every workload.
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

# The replicas are first divided between the clusters, then split within each
# cluster.
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

# The default for a StatefulSet: more than half of its replicas in each cluster are
# on on-demand nodes.
resource "scheduler_workload" "database" {
  name         = "database"
  api_version  = "apps/v1"
  kind         = "StatefulSet"
  replicas     = 6
  distribution = {}

  depends_on = [scheduler_propagation_policy.everything]
}

# The decision: pods on on-demand and spot nodes by cluster.
output "on_demand" {
  value = { web = scheduler_workload.web.on_demand, database = scheduler_workload.database.on_demand }
}

output "spot" {
  value = { web = scheduler_workload.web.spot, database = scheduler_workload.database.spot }
}

# Warn in every plan until the split is reached. progress/main.tf shows the
# progress.
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
