terraform {
  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

# Everything is optional: this is a server on the same machine. A token is best
# given as the environment variable SCHEDULER_TOKEN.
provider "scheduler" {
  endpoint  = "http://127.0.0.1:8665"
  namespace = "shop"
}
