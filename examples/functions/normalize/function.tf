# 0.25
output "normalized" {
  value = provider::scheduler::normalize(5, 0, 20)
}
