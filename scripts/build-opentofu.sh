#!/usr/bin/env bash
# Builds an OpenTofu command line from its Go module, for machines that have none installed.
#
# The acceptance tests run on it where it differs from Terraform. Nothing is left out: unlike Terraform's,
# the published module is complete.
# Does nothing when a binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED   where binaries and build directories go (default ~/.cache/scheduler-testbed)
#   OPENTOFU_VERSION    the module's version
set -euo pipefail

version=${OPENTOFU_VERSION:-v1.12.6}
testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
module=github.com/opentofu/opentofu
binary=$testbed/bin/tofu

if [[ -x $binary ]] && CHECKPOINT_DISABLE=1 "$binary" version 2>/dev/null | grep -qxF "OpenTofu $version"; then
	echo "$binary"
	exit 0
fi

# The caller's flags may name another module file or a vendor directory; this build has its own.
export GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0

build=$testbed/build/opentofu-$version
mkdir -p "$testbed/bin" "$testbed/build"
source=$(cd "$testbed/build" && GOFLAGS=-buildvcs=false go mod download -json "$module@$version" |
	sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
rm -rf "$build"
# A copy, because the build may complete go.sum and the module cache is not to be written.
cp -r "$source" "$build"
chmod -R u+w "$build"
cd "$build"

echo "building OpenTofu ${version#v}; this takes some minutes" >&2
go build -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$binary.new" ./cmd/tofu
# Moved into place only when complete: an interrupted build must not look like a finished one.
mv "$binary.new" "$binary"
rm -rf "$build"
echo "$binary"
