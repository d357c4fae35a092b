# By namespace and name, or by name in the provider's namespace.
terraform import scheduler_magnum_cluster.shop shop/shop
terraform import scheduler_magnum_cluster.shop shop

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_magnum_cluster.shop
#     identity = { namespace = "shop", name = "shop" }
#   }
