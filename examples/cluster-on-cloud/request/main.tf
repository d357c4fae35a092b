# A Kubernetes cluster is wanted, and the server says on which cloud: the one with
# the lowest price of those in the EU. ../main.tf creates it there. When it is
# there, its kubeconfig is given to this configuration, and the cluster takes
# workloads, with the labels of its cloud.

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

variable "clouds" {
  description = "The clouds: where they are, and the price of a machine in euro an hour."
  type        = map(object({ location = string, price = number }))
  default = {
    berlin = { location = "DE", price = 0.31 }
    paris  = { location = "FR", price = 0.22 }
    zurich = { location = "CH", price = 0.19 }
  }
}

variable "kubeconfig" {
  description = "Kubeconfig of the cluster, when it is there."
  type        = string
  ephemeral   = true
  default     = null
}

variable "kubeconfig_version" {
  description = "Change it with the kubeconfig."
  type        = number
  default     = 0
}

# The price of each cloud has the same name everywhere, in a namespace of the
# cloud: "price < 0.3" then means each cloud's own.
resource "scheduler_metrics_provider" "prices" {
  for_each = var.clouds

  name      = "prices"
  namespace = each.key
  type      = "static"
  static    = { metrics = { price = each.value.price } }
}

resource "scheduler_metric" "price" {
  for_each = var.clouds

  name             = "price"
  namespace        = each.key
  min              = 0
  max              = 1
  direction        = "descending" # cheap is good
  metrics_provider = { name = scheduler_metrics_provider.prices[each.key].name, metric = "price" }
}

# Without credentials nothing is asked of a cloud: labels and metrics are enough to
# choose one.
resource "scheduler_cloud" "site" {
  for_each = var.clouds

  name      = each.key
  namespace = "shop" # the clouds of a team; without it everybody's
  labels    = { location = each.value.location }
  metrics   = [{ name = scheduler_metric.price[each.key].name, namespace = each.key }]
}

resource "scheduler_cluster" "shop" {
  name      = "shop"
  namespace = "shop"

  cloud_constraints = {
    label_constraints  = ["location in (DE, FR)"]
    metric_constraints = ["price < 0.5"]
  }

  # Placements can then ask for the location of the cluster's cloud.
  inherit_labels = true

  # Neither of these moves the cluster: the choice stays.
  kubernetes = { kubeconfig_wo = var.kubeconfig, kubeconfig_wo_version = var.kubeconfig_version }

  # A cluster is put where the clouds are.
  depends_on = [scheduler_cloud.site]
}

output "cloud" {
  value = scheduler_cluster.shop.cloud
}
