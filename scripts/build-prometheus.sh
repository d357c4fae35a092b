#!/usr/bin/env bash
# Builds a Prometheus server from its Go module, for the demo and the integration tests.
#
# It needs nothing but Go: the module is taken through the module proxy Go is configured with, checked
# against the checksum database, and built without the service discovery plugins, which the tests do not
# use and which are most of its size. Does nothing when a binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED   where binaries and build directories go (default ~/.cache/scheduler-testbed)
#   PROMETHEUS_VERSION  the module's version; v0.315.0 is what Prometheus releases as 3.15.0
set -euo pipefail

version=${PROMETHEUS_VERSION:-v0.315.0}
testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
module=github.com/prometheus/prometheus
binary=$testbed/bin/prometheus

# Release 3.x.y is tagged v0.3xx.y as a Go module.
minor=${version#v0.3}
release=3.$((10#${minor%%.*})).${minor#*.}

if [[ -x $binary ]] && "$binary" --version 2>&1 | grep -qF "version $release "; then
	echo "$binary"
	exit 0
fi

# The caller's flags may name another module file or a vendor directory; this build has its own.
export GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0

build=$testbed/build/prometheus-$version
mkdir -p "$build" "$testbed/bin"
cd "$build"

# `go install module@version` refuses modules with replace directives, so a scratch module carries them over.
gomod=$(GOFLAGS=-buildvcs=false go mod download -json "$module@$version" |
	sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",\{0,1\}$/\1/p')
{
	echo "module scratch/prometheus"
	echo
	grep -E '^go ' "$gomod"
	echo
	echo "require $module $version"
	sed -n -e '/^replace (/,/^)/p' -e '/^replace [^(]/p' "$gomod"
} >go.mod
cat >import.go <<GO
//go:build scratch

package scratch

import _ "$module/cmd/prometheus"
GO

echo "building Prometheus $release; this takes some minutes" >&2
go mod tidy >tidy.log 2>&1 || { tail -n 20 tidy.log >&2; exit 1; }
go build -trimpath -tags netgo,remove_all_sd \
	-ldflags "-s -w -X github.com/prometheus/common/version.Version=$release" \
	-o "$binary.new" "$module/cmd/prometheus"
# Moved into place only when complete: an interrupted build must not look like a finished one.
mv "$binary.new" "$binary"
echo "$binary"
