# Import by name.
terraform import scheduler_role.deployer deployer

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_role.deployer
#     identity = { name = "deployer" }
#   }
