# Import by namespace and name, or by name in the provider's namespace.
terraform import scheduler_placement.web shop/web
terraform import scheduler_placement.web web

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_placement.web
#     identity = { namespace = "shop", name = "web" }
#   }
