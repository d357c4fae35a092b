# A Prometheus server. The token is write-only: it is in no plan and no state.
resource "scheduler_metrics_provider" "prometheus" {
  name                    = "prometheus"
  type                    = "prometheus"
  prometheus              = { url = "https://prometheus.example.com" }
  interval                = "30s"
  bearer_token_wo         = var.prometheus_token
  bearer_token_wo_version = 1
}

# Static values, for metrics that rarely change.
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

# InfluxDB. The metric's name is the name of the measurement.
resource "scheduler_metrics_provider" "influx" {
  name   = "influx"
  type   = "influx"
  influx = { url = "https://influxdb.example.com", org = "shop", bucket = "figures", token_wo = var.influx_token }
}

# A ksqlDB table with one row per metric.
resource "scheduler_metrics_provider" "ksqldb" {
  name = "ksqldb"
  type = "kafka"
  kafka = {
    url               = "https://ksqldb.example.com"
    table             = "figures"
    comparison_column = "name"
    value_column      = "latest"
  }
}

variable "influx_token" {
  type      = string
  ephemeral = true
  default   = null
}

# Carbon intensity, read for the zone in each cluster's label "zone". The second
# dollar sign keeps Terraform from filling in the placeholder itself.
resource "scheduler_metrics_provider" "carbon" {
  name      = "carbon"
  type      = "http_json"
  interval  = "5m"
  http_json = { url = "https://carbon.example.com/zones/$${labels.zone}/latest?unit=g", value = "/data/0/intensity" }
}

# A price list: one document, with a member for each cluster.
resource "scheduler_metrics_provider" "prices" {
  name      = "prices"
  type      = "http_json"
  interval  = "1h"
  http_json = { url = "https://cmdb.example.com/prices.json", value = "/clusters/$${cluster.name}/$${metric}" }
}
