# A shop runs on the cheapest cluster. Whatever applies Terraform, and whoever wants to
# know, is told when it moves. Leave out the destinations that you do not have.

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

variable "prices" {
  description = "Price of an hour by cluster."
  type        = map(number)
  default     = { berlin = 0.3, paris = 0.2 }
}

variable "addresses" {
  description = "Addresses of the destinations."
  type        = map(string)
  default = {
    webhook       = "https://hooks.example.com/scheduler"
    alertmanager  = "https://alertmanager.example.com"
    hcp_terraform = "https://app.terraform.io"
    github        = "https://api.github.com"
    gitlab        = "https://gitlab.com"
    atlantis      = "https://atlantis.example.com"
  }
}

variable "secrets" {
  description = "Secrets of the destinations. They are in no plan and no state."
  type        = map(string)
  ephemeral   = true
  default     = {}
}

resource "scheduler_metrics_provider" "prices" {
  name   = "prices"
  type   = "static"
  static = { metrics = var.prices }
}

resource "scheduler_metric" "price" {
  for_each = var.prices

  name             = "price-${each.key}"
  min              = 0
  max              = 1
  direction        = "descending"
  metrics_provider = { name = scheduler_metrics_provider.prices.name, metric = each.key }
}

resource "scheduler_cluster" "site" {
  for_each = var.prices

  name      = each.key
  namespace = "shop"
  metrics   = [{ name = scheduler_metric.price[each.key].name, weight = 1 }]
}

resource "scheduler_placement" "web" {
  name               = "web"
  number_of_clusters = 1
  cluster_names      = [for c in scheduler_cluster.site : c.name]
  reschedule_after   = "0s"

  # A notification tells of what happens after it was created.
  depends_on = [
    scheduler_notification.webhook, scheduler_notification.alertmanager, scheduler_notification.slack,
    scheduler_notification.hcp_terraform, scheduler_notification.github, scheduler_notification.gitlab,
    scheduler_notification.atlantis,
  ]
}

# Each event on its own: a CloudEvent, signed as in Standard Webhooks.
resource "scheduler_notification" "webhook" {
  name      = "webhook"
  namespace = "shop"
  events    = ["moved"]
  webhook   = { url = var.addresses.webhook, secret_wo = lookup(var.secrets, "webhook", null), secret_wo_version = 1 }
}

# Alerts. What recovers is resolved.
resource "scheduler_notification" "alertmanager" {
  name         = "alertmanager"
  namespace    = "shop"
  events       = ["moved", "undecided", "held"]
  alertmanager = { url = var.addresses.alertmanager, labels = { severity = "info" } }
}

# A message into a channel. The address of the channel is the secret.
resource "scheduler_notification" "slack" {
  name      = "slack"
  namespace = "shop"
  events    = ["moved", "undecided", "recovered"]
  slack     = { url_wo = lookup(var.secrets, "slack", null), url_wo_version = 1 }
}

# A run of the workspace that follows the placement.
resource "scheduler_notification" "hcp_terraform" {
  name      = "hcp-terraform"
  namespace = "shop"
  events    = ["moved"]
  selector  = { kinds = ["placement"] }
  settle    = "1s"

  hcp_terraform = {
    address          = var.addresses.hcp_terraform
    workspace_id     = "ws-6jrRyVDv1J8zQMB5"
    token_wo         = lookup(var.secrets, "hcp_terraform", null)
    token_wo_version = 1
  }
}

# The workflows of a repository with "on: repository_dispatch: types: [scheduler]".
resource "scheduler_notification" "github" {
  name      = "github"
  namespace = "shop"
  events    = ["moved"]
  selector  = { kinds = ["placement"] }
  settle    = "1s"

  github = {
    address          = var.addresses.github
    repository       = "acme/infrastructure"
    token_wo         = lookup(var.secrets, "github", null)
    token_wo_version = 1
  }
}

# A pipeline of a project.
resource "scheduler_notification" "gitlab" {
  name      = "gitlab"
  namespace = "shop"
  events    = ["moved"]
  selector  = { kinds = ["placement"] }
  settle    = "1s"

  gitlab = {
    address          = var.addresses.gitlab
    project          = "acme/infrastructure"
    ref              = "main"
    token_wo         = lookup(var.secrets, "gitlab", null)
    token_wo_version = 1
  }
}

# A plan of a project in atlantis.yaml.
resource "scheduler_notification" "atlantis" {
  name      = "atlantis"
  namespace = "shop"
  events    = ["moved"]
  selector  = { kinds = ["placement"] }
  settle    = "1s"

  atlantis = {
    url              = var.addresses.atlantis
    repository       = "acme/infrastructure"
    ref              = "main"
    projects         = ["shop"]
    token_wo         = lookup(var.secrets, "atlantis", null)
    token_wo_version = 1
  }
}
