# The projects that are tagged for the scheduler, as the OpenStack has them now.
data "scheduler_openstack_projects" "tagged" {
  cloud = "de"
  tags  = ["scheduler"]
}

# Each becomes one that Magnum clusters are put into.
resource "scheduler_openstack_project" "tagged" {
  for_each = { for p in data.scheduler_openstack_projects.tagged.projects : p.name => p }

  name       = each.key
  namespace  = "shop"
  project_id = each.value.id
  labels     = { cloud = "de" }

  # The first public template of Kubernetes, or none.
  template_id = try([
    for t in data.scheduler_openstack_projects.tagged.templates : t.id
    if t.public && t.coe == "kubernetes"
  ][0], null)
}
