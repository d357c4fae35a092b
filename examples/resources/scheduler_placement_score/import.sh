# By cluster and name.
terraform import scheduler_placement_score.support berlin/support

# From Terraform 1.12 on also by identity, in the configuration:
#
#   import {
#     to       = scheduler_placement_score.support
#     identity = { cluster = "berlin", name = "support" }
#   }
