# By namespace and name; a global policy by name.
terraform import scheduler_propagation_policy.web shop/web
terraform import scheduler_propagation_policy.settings settings

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_propagation_policy.web
#     identity = { namespace = "shop", name = "web" }
#   }
