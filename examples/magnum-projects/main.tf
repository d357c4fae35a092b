# A team can create Kubernetes clusters in several OpenStack projects. The server
# chooses a project for each cluster, by labels and remaining quota. Magnum then
# creates the cluster there, using the project's template.

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

variable "cloud" {
  description = "Cloud with credentials. Its projects tagged \"shop\" are used. If empty, var.projects is used."
  type        = string
  default     = ""
}

variable "projects" {
  description = "The projects: ID, location, cluster template, and share of the quota that is left."
  type        = map(object({ id = string, location = string, template = string, free = number }))
  default = {
    web   = { id = "1f0a", location = "DE", template = "k8s-1.34", free = 0.6 }
    batch = { id = "2f0b", location = "DE", template = "k8s-1.34-gpu", free = 0.3 }
    lab   = { id = "3f0c", location = "FR", template = "k8s-1.34", free = 0.9 }
  }
}

# The projects that currently exist in OpenStack.
data "scheduler_openstack_projects" "live" {
  count = var.cloud == "" ? 0 : 1

  cloud = var.cloud
  tags  = ["shop"]
}

locals {
  projects = var.cloud == "" ? var.projects : {
    for p in data.scheduler_openstack_projects.live[0].projects : p.name => {
      id       = p.id
      location = "DE"
      free     = 1 - min(p.clusters, 10) / 10
      template = try([for t in data.scheduler_openstack_projects.live[0].templates : t.id if t.public][0], null)
    }
  }
}

resource "scheduler_metrics_provider" "quota" {
  for_each = local.projects

  name      = "quota"
  namespace = each.key
  type      = "static"
  static    = { metrics = { free = each.value.free } }
}

resource "scheduler_metric" "free" {
  for_each = local.projects

  name             = "free"
  namespace        = each.key
  min              = 0
  max              = 1
  metrics_provider = { name = scheduler_metrics_provider.quota[each.key].name, metric = "free" }
}

resource "scheduler_openstack_project" "shop" {
  for_each = local.projects

  name        = each.key
  labels      = { location = each.value.location }
  metrics     = [{ name = scheduler_metric.free[each.key].name, namespace = each.key }]
  project_id  = each.value.id
  template_id = each.value.template
}

resource "scheduler_magnum_cluster" "frontend" {
  name               = "frontend"
  label_constraints  = ["location is DE"]
  metric_constraints = ["free > 0.1"]

  depends_on = [scheduler_openstack_project.shop]
}

# This cluster uses its own template.
resource "scheduler_magnum_cluster" "training" {
  name               = "training"
  label_constraints  = ["location in (DE, FR)"]
  metric_constraints = ["free > 0.5"]
  template_id        = "k8s-1.34-h100"

  depends_on = [scheduler_openstack_project.shop]
}

# Stands in for two openstack_containerinfra_cluster_v1 resources.
resource "terraform_data" "cluster" {
  for_each = { frontend = scheduler_magnum_cluster.frontend, training = scheduler_magnum_cluster.training }

  input = {
    name                = each.key
    project_id          = each.value.project_id
    cluster_template_id = each.value.selected_template_id
  }
}

output "clusters" {
  value = { for name, c in terraform_data.cluster : name => "${c.output.cluster_template_id} in ${c.output.project_id}" }
}
