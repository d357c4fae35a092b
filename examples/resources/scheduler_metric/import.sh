# Import by name, or by namespace and name.
terraform import scheduler_metric.electricity electricity
terraform import scheduler_metric.electricity berlin/electricity

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_metric.electricity
#     identity = { namespace = "berlin", name = "electricity" }
#   }
