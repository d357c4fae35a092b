# Import by namespace and name, or by name in the provider's namespace.
terraform import scheduler_magnum_cluster.shop shop/shop
terraform import scheduler_magnum_cluster.shop shop

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_magnum_cluster.shop
#     identity = { namespace = "shop", name = "shop" }
#   }
