# Creates the Kubernetes cluster that request/ asks for on the cloud that the
# server chose. It is a configuration of its own, so that the choice is known when
# it plans: a provider can be told which cloud it is for, and for_each works.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {}

# Where the choice is. A cloud that is gone is replaced by another one, and this
# configuration then plans to create the cluster there.
data "scheduler_cluster" "wanted" {
  name = "shop"
}

locals {
  clouds = toset(compact([data.scheduler_cluster.wanted.status.cloud]))
}

# This stands for what creates the cluster, such as an
# openstack_containerinfra_cluster_v1 of the OpenStack provider:
#
#   provider "openstack" {
#     cloud = data.scheduler_cluster.wanted.status.cloud # an entry of clouds.yaml
#   }
#
#   resource "openstack_containerinfra_cluster_v1" "shop" {
#     for_each            = local.clouds
#     name                = "shop"
#     cluster_template_id = var.templates[each.key]
#   }
resource "terraform_data" "kubernetes" {
  for_each = local.clouds

  input = { name = "shop", cloud = each.key }
}

output "created_on" {
  value = keys(terraform_data.kubernetes)
}

# To be given to request/ as var.kubeconfig:
#
#   output "kubeconfig" {
#     value     = one([for c in openstack_containerinfra_cluster_v1.shop : c.kubeconfig.raw_config])
#     sensitive = true
#   }
