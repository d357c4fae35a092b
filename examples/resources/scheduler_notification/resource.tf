# Every move in the namespace shop, to a service of your own. The secret is write-only: it
# is in no plan and no state.
resource "scheduler_notification" "moves" {
  name      = "moves"
  namespace = "shop"
  events    = ["moved"]

  webhook = {
    url               = "https://hooks.example.com/scheduler"
    secret_wo         = var.webhook_secret
    secret_wo_version = 1
  }
}

# What somebody has to look at, in the whole fleet, to the people on call.
resource "scheduler_notification" "trouble" {
  name   = "trouble"
  events = ["undecided", "brake", "provider_failing", "cluster_offline", "recovered"]

  alertmanager = {
    url    = "https://alertmanager.example.com"
    labels = { severity = "page" }
  }
}

# A run of the workspace that deploys what follows the placements, half a minute after
# the first of several moves.
resource "scheduler_notification" "deploy" {
  name     = "deploy"
  events   = ["moved"]
  selector = { kinds = ["placement"], namespaces = ["shop"] }
  settle   = "30s"

  hcp_terraform = {
    workspace_id = "ws-6jrRyVDv1J8zQMB5"
    token_wo     = var.hcp_terraform_token
  }
}

variable "webhook_secret" {
  description = "\"whsec_\" and 24 to 64 random bytes in base64."
  type        = string
  ephemeral   = true
  default     = null # nothing is signed
}

variable "hcp_terraform_token" {
  type      = string
  ephemeral = true
  default   = null # nothing is started
}
