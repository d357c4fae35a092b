# By name.
terraform import scheduler_cluster.berlin berlin

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_cluster.berlin
#     identity = { name = "berlin" }
#   }
