data "scheduler_metric" "electricity" {
  name      = "electricity"
  namespace = "berlin"
}

# Warn when the metric has no usable value.
check "electricity" {
  assert {
    condition     = anytrue([for c in data.scheduler_metric.electricity.status.conditions : c.type == "Available" && c.status == "True"])
    error_message = "The price of electricity in Berlin is not available."
  }
}
