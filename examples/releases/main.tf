# A web shop that is installed with Helm where the scheduler wants it, and a worker
# whose replicas the scheduler divides: a kubernetes_deployment_v1 on each cluster.
#
# Each cluster has its provider blocks and its resources, with replicas where the
# decision says so. So every plan works, also one in which a decision is not known
# yet. The guide on decisions in plans shows for_each over a decision.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.30"
    }
  }
}

provider "scheduler" {
  namespace = "shop"
}

variable "kubeconfig" {
  description = "Kubeconfig with a context for each cluster, named like the cluster."
  type        = string
  default     = "~/.kube/config"
}

# Providers cannot be created with for_each, so each cluster has its own blocks.
provider "helm" {
  alias      = "berlin"
  kubernetes = { config_path = var.kubeconfig, config_context = "berlin" }
}

provider "helm" {
  alias      = "paris"
  kubernetes = { config_path = var.kubeconfig, config_context = "paris" }
}

provider "kubernetes" {
  alias          = "berlin"
  config_path    = var.kubeconfig
  config_context = "berlin"
}

provider "kubernetes" {
  alias          = "paris"
  config_path    = var.kubeconfig
  config_context = "paris"
}

resource "scheduler_cluster" "site" {
  for_each = { berlin = "DE", paris = "FR" }

  name        = each.key
  labels      = { location = each.value }
  allocatable = { cpu = "32" }
}

# One cluster at a time: the release on the other one has no replicas.
resource "scheduler_placement" "shop" {
  name               = "shop"
  number_of_clusters = 1
  label_constraints  = ["location in (DE, FR)"]

  depends_on = [scheduler_cluster.site]
}

locals {
  shop = { for name in keys(scheduler_cluster.site) : name => contains(scheduler_placement.shop.clusters, name) ? 3 : 0 }
}

resource "helm_release" "shop_berlin" {
  provider = helm.berlin

  name       = "shop"
  repository = "https://charts.example.com"
  chart      = "shop"
  namespace  = "shop"
  set        = [{ name = "replicaCount", value = local.shop["berlin"] }]
}

resource "helm_release" "shop_paris" {
  provider = helm.paris

  name       = "shop"
  repository = "https://charts.example.com"
  chart      = "shop"
  namespace  = "shop"
  set        = [{ name = "replicaCount", value = local.shop["paris"] }]
}

# Both clusters at once: the policy divides the worker's replicas by free capacity.
resource "scheduler_propagation_policy" "workers" {
  name               = "workers"
  namespace          = "shop"
  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment", name = "worker" }]

  placement = {
    cluster_affinity   = { cluster_names = keys(scheduler_cluster.site) }
    replica_scheduling = { weight_preference = { dynamic_weight = "AvailableReplicas" } }
  }
}

resource "scheduler_workload" "worker" {
  name             = "worker"
  api_version      = "apps/v1"
  kind             = "Deployment"
  replicas         = 6
  replica_requests = { cpu = "500m" }

  depends_on = [scheduler_propagation_policy.workers]
}

resource "kubernetes_deployment_v1" "worker_berlin" {
  provider = kubernetes.berlin

  metadata {
    name      = "worker"
    namespace = "shop"
  }

  spec {
    replicas = lookup(scheduler_workload.worker.clusters, "berlin", 0)

    selector {
      match_labels = { app = "worker" }
    }

    template {
      metadata {
        labels = { app = "worker" }
      }

      spec {
        container {
          name  = "worker"
          image = "registry.example.com/shop/worker:1"
        }
      }
    }
  }
}

resource "kubernetes_deployment_v1" "worker_paris" {
  provider = kubernetes.paris

  metadata {
    name      = "worker"
    namespace = "shop"
  }

  spec {
    replicas = lookup(scheduler_workload.worker.clusters, "paris", 0)

    selector {
      match_labels = { app = "worker" }
    }

    template {
      metadata {
        labels = { app = "worker" }
      }

      spec {
        container {
          name  = "worker"
          image = "registry.example.com/shop/worker:1"
        }
      }
    }
  }
}
