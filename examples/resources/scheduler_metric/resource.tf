# The price of electricity, read with a query. Free is best (1); half a euro or more
# is worst (0). If Prometheus does not respond, the last price is used for an hour.
resource "scheduler_metric" "electricity" {
  name       = "electricity"
  namespace  = "berlin"
  min        = 0
  max        = 0.5
  direction  = "descending"
  on_failure = "last_value"
  max_age    = "1h"

  metrics_provider = {
    name   = scheduler_metrics_provider.prometheus.name
    metric = "avg_over_time(electricity_price[5m])"
  }
}

resource "scheduler_metrics_provider" "prometheus" {
  name       = "prometheus"
  namespace  = "berlin"
  type       = "prometheus"
  prometheus = { url = "http://prometheus:9090" }
}
