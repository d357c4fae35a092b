# { key = "location", operator = "not in", values = ["DE", "SK"] }
output "constraint" {
  value = provider::scheduler::parse_label_constraint("location not in (DE, SK)")
}
