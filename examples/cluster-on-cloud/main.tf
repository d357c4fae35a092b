# Create the Kubernetes cluster that request/ asks for, on the cloud that the server
# chose. This is a separate configuration so that the choice is known during the
# plan. Provider blocks and for_each can then use it.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {}

# The choice. If the cloud is deleted, the server chooses another one, and the next
# plan of this configuration creates the cluster there.
data "scheduler_cluster" "wanted" {
  name = "shop"
}

locals {
  clouds = toset(compact([data.scheduler_cluster.wanted.status.cloud]))
}

# Stands in for the resource that creates the cluster, such as
# openstack_containerinfra_cluster_v1 of the OpenStack provider:
#
#   provider "openstack" {
#     cloud = data.scheduler_cluster.wanted.status.cloud # an entry in clouds.yaml
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

# Pass this to request/ as var.kubeconfig:
#
#   output "kubeconfig" {
#     value     = one([for c in openstack_containerinfra_cluster_v1.shop : c.kubeconfig.raw_config])
#     sensitive = true
#   }
