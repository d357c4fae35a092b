data "scheduler_server" "this" {}

output "server" {
  value = "${data.scheduler_server.this.version}, ${data.scheduler_server.this.store.mode} store"
}
