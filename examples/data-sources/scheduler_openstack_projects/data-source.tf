# The projects that are currently tagged for the scheduler in OpenStack.
data "scheduler_openstack_projects" "tagged" {
  cloud = "de"
  tags  = ["scheduler"]
}

# Make each of them available for Magnum clusters.
resource "scheduler_openstack_project" "tagged" {
  for_each = { for p in data.scheduler_openstack_projects.tagged.projects : p.name => p }

  name       = each.key
  namespace  = "shop"
  project_id = each.value.id
  labels     = { cloud = "de" }

  # The first public Kubernetes template, if any.
  template_id = try([
    for t in data.scheduler_openstack_projects.tagged.templates : t.id
    if t.public && t.coe == "kubernetes"
  ][0], null)
}
