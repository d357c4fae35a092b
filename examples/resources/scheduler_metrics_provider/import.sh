# By name, or by namespace and name.
terraform import scheduler_metrics_provider.prometheus prometheus
terraform import scheduler_metrics_provider.prometheus shop/prometheus

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_metrics_provider.prometheus
#     identity = { namespace = "shop", name = "prometheus" }
#   }
