#!/usr/bin/env bash
# Shows on this machine what several servers are for: three etcd members, three servers, a load balancer, and
# `terraform apply` in a loop while they are killed one after the other. It leaves nothing behind.
#
#   scripts/demo-ha.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/local-server.sh

go build -o "$work/failover" ./examples/demo/failover
cp -R examples/demo/failover/fleet "$work/fleet"
"$work/failover" -server bin/scheduler-server -config "$work/fleet" -work "$work" -rounds "${1:-11}"
