#!/usr/bin/env bash
# Builds an InfluxDB server from its Go module, for the integration tests, unless a binary of the wanted version
# exists.
#
# 1.8 is the last version written only in Go. It supports InfluxQL and, if enabled in its configuration, Flux.
#
#   SCHEDULER_TESTBED   directory of the binaries (default ~/.cache/scheduler-testbed)
#   INFLUXDB_VERSION    the module's version (default v1.8.10)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${INFLUXDB_VERSION:-v1.8.10}
binary=$testbed/bin/influxd

if ! shows "InfluxDB $version" "$binary" version; then
	building "InfluxDB ${version#v}"
	install_command "$binary" "github.com/influxdata/influxdb/cmd/influxd@$version" "-X main.version=${version#v}"
fi
echo "$binary"
