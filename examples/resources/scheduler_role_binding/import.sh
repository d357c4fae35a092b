# Import by name.
terraform import scheduler_role_binding.bank pipeline-bank

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_role_binding.bank
#     identity = { name = "pipeline-bank" }
#   }
