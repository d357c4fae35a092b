# true
output "matches" {
  value = provider::scheduler::matches({ location = "DE", tier = "prod" }, ["location in (DE, SK)", "tier != edge"])
}
