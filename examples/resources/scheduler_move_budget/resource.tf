# All decisions of the server together leave at most a tenth of their clusters in an
# hour, and those of the namespace "shop" at most two.
resource "scheduler_move_budget" "server" {
  name      = "server"
  max_moves = "10%"
  per       = "1h"
}

resource "scheduler_move_budget" "shop" {
  name      = "slowly"
  namespace = "shop"
  max_moves = "2"
  per       = "1h"
}
