# The token of the pipeline may also deploy for the bank.
resource "scheduler_role_binding" "bank" {
  name       = "pipeline-bank"
  role       = scheduler_role.deployer.name
  namespaces = ["bank"]
  token_ids  = ["0123456789abcdef"]
}

resource "scheduler_role" "deployer" {
  name = "deployer"
  rules = [
    { verbs = ["read"] },
    { verbs = ["write", "delete"], kinds = ["placement", "workload"] },
  ]
}

# Logins are bound by their claims, if the configuration of the server trusts
# their issuer:
#
#   resource "scheduler_role_binding" "on_call" {
#     name   = "on-call"
#     role   = "viewer"
#     issuer = "people"
#     claims = { groups = "on-call" }
#   }
