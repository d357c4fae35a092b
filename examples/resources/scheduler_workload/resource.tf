# Ten replicas of a Deployment. A policy decides where they run.
resource "scheduler_workload" "web" {
  name      = "web"
  namespace = "shop"
  labels    = { team = "checkout" } # policies can select by labels

  api_version      = "apps/v1"
  kind             = "Deployment"
  replicas         = 10
  replica_requests = { cpu = "500m", memory = "1Gi" }

  # Workloads with a higher priority are placed first.
  priority = 10

  # Three of the ten run on on-demand nodes, the others on spot nodes, if the
  # cluster has both.
  distribution = {
    mode             = "custom"
    custom_on_demand = "3"
  }

  wait = { on_timeout = "warning" }

  # The workload is bound with the policies that exist at that moment.
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

# A workload without replicas gets one copy on every chosen cluster.
resource "scheduler_workload" "settings" {
  name        = "settings"
  namespace   = "shop"
  api_version = "v1"
  kind        = "ConfigMap"
}

# With keys that are known in advance, every plan works.
resource "terraform_data" "deployment" {
  for_each = toset(["berlin", "paris", "warsaw"])

  input = {
    cluster = each.key
    # Includes replicas that keep running until their replacements are healthy.
    replicas = lookup(merge(scheduler_workload.web.evicting, scheduler_workload.web.clusters), each.key, 0)
  }
}

# Machines by flavor, on sites (clusters with a region and a zone). No policy is
# needed.
resource "scheduler_workload" "render" {
  name        = "render"
  namespace   = "shop"
  api_version = "v1"
  kind        = "VirtualMachine"
  replicas    = 3

  allocation = {
    flavors         = ["large", "small"] # in order of preference
    regions         = [{ region = "RegionOne", availability_zones = ["az1", "az2"] }]
    region_strategy = "alone" # all machines in one region
  }

  wait = { on_timeout = "warning" }
}
