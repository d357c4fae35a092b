# Import by name.
terraform import scheduler_cluster.berlin berlin

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_cluster.berlin
#     identity = { name = "berlin" }
#   }
