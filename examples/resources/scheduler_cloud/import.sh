# Import by name.
terraform import scheduler_cloud.de de

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_cloud.de
#     identity = { name = "de" }
#   }
