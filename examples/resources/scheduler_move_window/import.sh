# Import by name, or by namespace and name.
terraform import scheduler_move_window.nights nights
terraform import scheduler_move_window.weekend shop/weekend

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_move_window.weekend
#     identity = { namespace = "shop", name = "weekend" }
#   }
