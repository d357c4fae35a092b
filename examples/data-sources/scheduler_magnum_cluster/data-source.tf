data "scheduler_magnum_cluster" "shop" {
  name      = "shop"
  namespace = "shop"
}

output "shop" {
  value = {
    project = data.scheduler_magnum_cluster.shop.status.project
    score   = data.scheduler_magnum_cluster.shop.status.score
    labels  = data.scheduler_magnum_cluster.shop.status.labels
  }
}
