resource "scheduler_openstack_project" "web" {
  name      = "web"
  namespace = "shop"
  labels    = { location = "DE", tier = "prod" }

  # Used to rate the project when the server chooses one for a Magnum cluster.
  metrics = [{ name = "price", namespace = "de" }]

  project_id  = "2b0f9a4a4c7e4f1e8f1d1d9d6a3f3d10"
  template_id = "f3c9e8a2-5c0b-4a55-9a5e-7d6d0b1c2f4e"
}
