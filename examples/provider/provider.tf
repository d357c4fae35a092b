terraform {
  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

# All arguments are optional. By default, the provider uses a server on the same
# machine. Set the token with the environment variable SCHEDULER_TOKEN.
provider "scheduler" {
  endpoint  = "http://127.0.0.1:8665"
  namespace = "shop"
}
