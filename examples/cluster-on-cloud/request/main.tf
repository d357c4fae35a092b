# Request a Kubernetes cluster and let the server choose the cloud: the cheapest one
# in the EU. ../main.tf creates the cluster there. Once it exists, pass its
# kubeconfig to this configuration. The cluster then takes workloads and has the
# labels of its cloud.

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
  description = "The clouds: location, and price of a machine in euros per hour."
  type        = map(object({ location = string, price = number }))
  default = {
    berlin = { location = "DE", price = 0.31 }
    paris  = { location = "FR", price = 0.22 }
    zurich = { location = "CH", price = 0.19 }
  }
}

variable "kubeconfig" {
  description = "Kubeconfig of the cluster, once it exists."
  type        = string
  ephemeral   = true
  default     = null
}

variable "kubeconfig_version" {
  description = "Change this to send a new kubeconfig."
  type        = number
  default     = null
}

# Each cloud has a namespace for its metrics, so that every price metric can have
# the same name. "price < 0.3" then refers to each cloud's own price.
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
  direction        = "descending" # cheaper is better
  metrics_provider = { name = scheduler_metrics_provider.prices[each.key].name, metric = "price" }
}

# Credentials are not needed here: labels and metrics are enough to choose a cloud.
resource "scheduler_cloud" "site" {
  for_each = var.clouds

  name      = each.key
  namespace = "shop" # clouds of this team; omit to share them with everybody
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

  # Placements can then select the cluster by the location of its cloud.
  inherit_labels = true

  # Changing these does not move the cluster.
  kubernetes = { kubeconfig_wo = var.kubeconfig, kubeconfig_wo_version = var.kubeconfig_version }

  # The server can only choose a cloud that already exists.
  depends_on = [scheduler_cloud.site]
}

output "cloud" {
  value = scheduler_cluster.shop.cloud
}
