# Import by name.
terraform import scheduler_cluster_set.eu eu

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_cluster_set.eu
#     identity = { name = "eu" }
#   }
