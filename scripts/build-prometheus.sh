#!/usr/bin/env bash
# Builds a Prometheus server from its Go module, for the demo and the integration tests. Does nothing when a binary of
# the wanted version is already there.
#
# It is built without the service discovery plugins, which the tests do not use and which are most of its size.
#
#   SCHEDULER_TESTBED   where binaries and build directories go (default ~/.cache/scheduler-testbed)
#   PROMETHEUS_VERSION  the module's version; v0.315.0 is what Prometheus releases as 3.15.0
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${PROMETHEUS_VERSION:-v0.315.0}
module=github.com/prometheus/prometheus
binary=$testbed/bin/prometheus

# Release 3.x.y is tagged v0.3xx.y as a Go module.
minor=${version#v0.3}
release=3.$((10#${minor%%.*})).${minor#*.}

if ! shows "version $release" "$binary" --version; then
	building "Prometheus $release"
	gomod=$(module_path GoMod "$module@$version")
	scratch_module "$testbed/build/prometheus-$version" "$module/cmd/prometheus" < <(
		echo "module scratch/prometheus"
		echo
		grep -E '^go ' "$gomod"
		echo
		echo "require $module $version"
		sed -n -e '/^replace (/,/^)/p' -e '/^replace [^(]/p' "$gomod"
	)
	go build -trimpath -tags netgo,remove_all_sd \
		-ldflags "-s -w -X github.com/prometheus/common/version.Version=$release" \
		-o "$binary.new" "$module/cmd/prometheus"
	in_place "$binary"
fi
echo "$binary"
