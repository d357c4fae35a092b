# Import by cluster and name.
terraform import scheduler_placement_score.support berlin/support

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_placement_score.support
#     identity = { cluster = "berlin", name = "support" }
#   }
