# Import by name, or by namespace and name.
terraform import scheduler_freeze.example holidays
terraform import scheduler_freeze.example shop/holidays

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_freeze.example
#     identity = { namespace = "shop", name = "holidays" }
#   }
