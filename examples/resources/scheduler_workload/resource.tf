# Ten replicas of a Deployment. A policy says where they run.
resource "scheduler_workload" "web" {
  name      = "web"
  namespace = "shop"
  labels    = { team = "checkout" } # policies select by them

  api_version      = "apps/v1"
  kind             = "Deployment"
  replicas         = 10
  replica_requests = { cpu = "500m", memory = "1Gi" }

  # Placed before workloads of lower numbers.
  priority = 10

  # Three of the ten run on on-demand nodes, the others on spot nodes, where the
  # cluster has both.
  distribution = {
    mode             = "custom"
    custom_on_demand = "3"
  }

  wait = { on_timeout = "warning" }

  # A workload is bound by the policies that are there.
  depends_on = [scheduler_propagation_policy.deployments]
}

resource "scheduler_propagation_policy" "deployments" {
  name               = "deployments"
  namespace          = "shop"
  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]

  placement = {
    replica_scheduling = { division_preference = "Aggregated" }
  }
}

# What is not replicated gets a copy on every chosen cluster.
resource "scheduler_workload" "settings" {
  name        = "settings"
  namespace   = "shop"
  api_version = "v1"
  kind        = "ConfigMap"
}

# With keys that are known beforehand every plan works, whatever it knows.
resource "terraform_data" "deployment" {
  for_each = toset(["berlin", "paris", "warsaw"])

  input = {
    cluster = each.key
    # Also where they still have to run until their replacement is healthy.
    replicas = lookup(merge(scheduler_workload.web.evicting, scheduler_workload.web.clusters), each.key, 0)
  }
}

# Machines of a size, on sites: clusters with a region and a zone. No policy is
# needed.
resource "scheduler_workload" "render" {
  name        = "render"
  namespace   = "shop"
  api_version = "v1"
  kind        = "VirtualMachine"
  replicas    = 3

  allocation = {
    flavors         = ["large", "small"] # the best first
    regions         = [{ region = "RegionOne", availability_zones = ["az1", "az2"] }]
    region_strategy = "alone" # all of them in one region
  }

  wait = { on_timeout = "warning" }
}
