# Import by name, or by namespace and name.
terraform import scheduler_move_window.example nights
terraform import scheduler_move_window.example shop/nights

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_move_window.example
#     identity = { namespace = "shop", name = "nights" }
#   }
