#!/usr/bin/env bash
# Demonstrates high availability on this machine: three etcd members, three servers, a load balancer, and `terraform
# apply` in a loop while they are killed one after the other. Then the same without the load balancer, with a provider
# that knows all servers, and then without etcd, with the servers' own stores as the cluster. It leaves nothing behind.
#
#   scripts/demo-ha.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/local-server.sh

go build -o "$work/failover" ./examples/demo/failover
for way in -direct=false -direct "-direct -peers"; do
	mkdir -p "$work/$way"
	cp -R examples/demo/failover/fleet "$work/$way"
	# shellcheck disable=SC2086 # a way is a list of flags
	"$work/failover" $way -server bin/scheduler-server -config "$work/$way/fleet" -work "$work/$way" -rounds "${1:-11}"
done
