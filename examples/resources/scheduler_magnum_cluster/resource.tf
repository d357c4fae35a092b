# The server chooses one of the projects in the namespace.
resource "scheduler_magnum_cluster" "shop" {
  name              = "shop"
  namespace         = "shop"
  label_constraints = ["location is DE", "tier is prod"]

  # The server can only choose a project that already exists.
  depends_on = [scheduler_openstack_project.web]
}

resource "scheduler_openstack_project" "web" {
  name        = "web"
  namespace   = "shop"
  labels      = { location = "DE", tier = "prod" }
  project_id  = "2b0f9a4a4c7e4f1e8f1d1d9d6a3f3d10"
  template_id = "f3c9e8a2-5c0b-4a55-9a5e-7d6d0b1c2f4e"
}

# Stands in for the openstack_containerinfra_cluster_v1 that is created there.
resource "terraform_data" "shop" {
  input = {
    project_id          = scheduler_magnum_cluster.shop.project_id
    cluster_template_id = scheduler_magnum_cluster.shop.selected_template_id
  }
}
