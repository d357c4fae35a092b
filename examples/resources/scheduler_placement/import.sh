# By namespace and name, or by name in the provider's namespace.
terraform import scheduler_placement.web shop/web
terraform import scheduler_placement.web web

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_placement.web
#     identity = { namespace = "shop", name = "web" }
#   }
