# By name.
terraform import scheduler_cluster_set.eu eu

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_cluster_set.eu
#     identity = { name = "eu" }
#   }
