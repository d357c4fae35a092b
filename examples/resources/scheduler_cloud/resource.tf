# An OpenStack cloud whose capacity the server collects every minute.
resource "scheduler_cloud" "de" {
  name   = "de"
  labels = { location = "DE", operator = "example" }

  # Used to rate the cloud when the server chooses one for a cluster.
  metrics = [{ name = "price-de" }]

  openstack = {
    auth_url = "https://keystone.de.example.com:5000/v3"
    username = "scheduler"
    # Write-only: it is in no plan and no state. Change the version to send a new
    # password.
    password_wo         = var.openstack_password
    password_wo_version = 1
    project_name        = "admin"
    regions             = ["RegionOne"]
    timeout             = "5s"
  }

}

# A cloud that the server cannot reach. `scheduler-server collect` runs close to it
# and pushes its capacity.
resource "scheduler_cloud" "edge" {
  name      = "edge"
  namespace = "shop" # only for clusters of the shop
  labels    = { location = "FR" }
}

variable "openstack_password" {
  type      = string
  ephemeral = true
  default   = null
}
