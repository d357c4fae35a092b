# Import by name, or by namespace and name.
terraform import scheduler_notification.example ops
terraform import scheduler_notification.example shop/ops

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_notification.example
#     identity = { namespace = "shop", name = "ops" }
#   }
