# By name, or by namespace and name.
terraform import scheduler_metric.electricity electricity
terraform import scheduler_metric.electricity berlin/electricity

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_metric.electricity
#     identity = { namespace = "berlin", name = "electricity" }
#   }
