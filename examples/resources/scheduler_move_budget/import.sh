# Import by name, or by namespace and name.
terraform import scheduler_move_budget.example slowly
terraform import scheduler_move_budget.example shop/slowly

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_move_budget.example
#     identity = { namespace = "shop", name = "slowly" }
#   }
