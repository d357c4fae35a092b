# Import by namespace and name, or by name in the provider's namespace.
terraform import scheduler_openstack_project.web shop/web
terraform import scheduler_openstack_project.web web

# With Terraform 1.12 or later, you can also import by identity in the
# configuration:
#
#   import {
#     to       = scheduler_openstack_project.web
#     identity = { namespace = "shop", name = "web" }
#   }
