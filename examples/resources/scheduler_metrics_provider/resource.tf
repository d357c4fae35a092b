# A Prometheus server. The token is write-only: in no plan and no state.
resource "scheduler_metrics_provider" "prometheus" {
  name            = "prometheus"
  type            = "prometheus"
  prometheus      = { url = "https://prometheus.example.com" }
  interval        = "30s"
  bearer_token    = var.prometheus_token
  secrets_version = 1
}

# A fixed table, for figures that hardly change.
resource "scheduler_metrics_provider" "tariffs" {
  name   = "tariffs"
  type   = "static"
  static = { metrics = { tariff_de = 0.31, tariff_fr = 0.22 } }
}

variable "prometheus_token" {
  type      = string
  ephemeral = true
  default   = null # no token
}
