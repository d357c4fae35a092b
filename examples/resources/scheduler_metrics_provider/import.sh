# Import by name, or by namespace and name.
terraform import scheduler_metrics_provider.prometheus prometheus
terraform import scheduler_metrics_provider.prometheus shop/prometheus

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_metrics_provider.prometheus
#     identity = { namespace = "shop", name = "prometheus" }
#   }
