# A token that a script of this run uses, and that is revoked at its end.
ephemeral "scheduler_token" "report" {
  role        = "viewer"
  namespaces  = ["shop"]
  lifetime    = "30m"
  description = "the report of this run"
}
