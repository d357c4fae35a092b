# Import by namespace and name, or a global policy by name.
terraform import scheduler_propagation_policy.web shop/web
terraform import scheduler_propagation_policy.settings settings

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_propagation_policy.web
#     identity = { namespace = "shop", name = "web" }
#   }
