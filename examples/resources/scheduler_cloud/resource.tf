# An OpenStack whose figures the server collects every minute.
resource "scheduler_cloud" "de" {
  name   = "de"
  labels = { location = "DE", operator = "example" }

  # What rates the cloud when one is chosen for a cluster.
  metrics = [{ name = "price-de" }]

  openstack = {
    auth_url = "https://keystone.de.example.com:5000/v3"
    username = "scheduler"
    # Write-only: in no plan and no state. Change the version with the password.
    password_wo         = var.openstack_password
    password_wo_version = 1
    project_name        = "admin"
    regions             = ["RegionOne"]
    timeout             = "5s"
  }

}

# One that the server cannot reach: `scheduler-server collect` runs beside it and
# pushes the figures.
resource "scheduler_cloud" "edge" {
  name      = "edge"
  namespace = "shop" # only clusters of the shop are created on it
  labels    = { location = "FR" }
}

variable "openstack_password" {
  type      = string
  ephemeral = true
  default   = null
}
