# Place machines in the availability zones of an OpenStack cloud. Each zone is
# represented by a cluster, which takes its capacity and flavors from the zone. A
# workload asks for flavors.

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

variable "auth_url" {
  description = "Identity service of the OpenStack cloud. If empty, a collector pushes the capacity (scheduler-server collect --cloud de …)."
  type        = string
  default     = ""
}

variable "password" {
  description = "Password of the user scheduler, which may list hypervisors."
  type        = string
  ephemeral   = true
  default     = null
}

variable "zones" {
  description = "The zones by region, and their cities."
  type        = map(map(string))
  default = {
    RegionOne = { az1 = "Berlin", az2 = "Hamburg" }
  }
}

variable "replicas" {
  type    = number
  default = 3
}

resource "scheduler_cloud" "de" {
  name = "de"

  openstack = var.auth_url == "" ? null : {
    auth_url            = var.auth_url
    username            = "scheduler"
    password_wo         = var.password
    password_wo_version = 1
    project_name        = "admin"
  }
}

locals {
  sites = merge([
    for region, zones in var.zones : {
      for zone, city in zones : lower("${region}-${zone}") => { region = region, zone = zone, city = city }
    }
  ]...)
}

resource "scheduler_cluster" "site" {
  for_each = local.sites

  name   = each.key
  region = each.value.region
  zones  = [each.value.zone]
  claims = { country = "DE", city = each.value.city, operator = "example" }

  openstack = {
    cloud             = scheduler_cloud.de.name
    region            = each.value.region
    availability_zone = each.value.zone
  }
}

# One machine per replica with 10 GB of storage: large if a zone has room for it,
# otherwise small.
resource "scheduler_workload" "render" {
  name             = "render"
  api_version      = "v1"
  kind             = "VirtualMachine"
  replicas         = var.replicas
  replica_requests = { "storage/ssd" = "10Gi" }

  allocation = {
    flavors           = ["large", "small"]
    regions           = [{ region = "RegionOne" }]
    geo_location      = { country = "DE" }
    location_strategy = "centralize" # fill the best zone first
  }

  # The workload waits until the zones have been collected.
  wait = { on_timeout = "warning" }

  depends_on = [scheduler_cluster.site]
}

# The flavor used in each zone.
data "scheduler_workload" "render" {
  name = scheduler_workload.render.name
}

output "machines" {
  value = scheduler_workload.render.clusters
}

output "flavors" {
  value = { for c in data.scheduler_workload.render.binding : c.name => c.flavor }
}
