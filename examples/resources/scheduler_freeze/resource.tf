# Nothing moves during the holidays unless it must.
resource "scheduler_freeze" "holidays" {
  name   = "holidays"
  reason = "holidays: call the person on duty first"
  until  = "2027-01-04T08:00:00Z"
}
