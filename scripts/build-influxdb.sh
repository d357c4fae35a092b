#!/usr/bin/env bash
# Builds an InfluxDB server from its Go module, for the integration tests.
#
# It needs nothing but Go: the module is taken through the module proxy Go is configured with and checked
# against the checksum database. 1.8 is the last version without parts in other languages; it has InfluxQL and,
# switched on in its configuration, Flux. Does nothing when a binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED   where binaries go (default ~/.cache/scheduler-testbed)
#   INFLUXDB_VERSION    the module's version (default v1.8.10)
set -euo pipefail

version=${INFLUXDB_VERSION:-v1.8.10}
testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
binary=$testbed/bin/influxd

if [[ -x $binary ]] && "$binary" version 2>&1 | grep -qF "InfluxDB $version "; then
	echo "$binary"
	exit 0
fi

# The caller's flags may name another module file or a vendor directory; this build has its own.
export GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0

mkdir -p "$testbed/bin"
scratch=$(mktemp -d "$testbed/bin/influxd.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

echo "building InfluxDB ${version#v}; this takes some minutes" >&2
GOBIN=$scratch go install -trimpath -ldflags "-s -w -X main.version=${version#v}" \
	"github.com/influxdata/influxdb/cmd/influxd@$version"
# Moved into place only when complete: an interrupted build must not look like a finished one.
mv "$scratch/influxd" "$binary"
echo "$binary"
