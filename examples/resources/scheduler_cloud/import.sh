# By name.
terraform import scheduler_cloud.de de

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_cloud.de
#     identity = { name = "de" }
#   }
