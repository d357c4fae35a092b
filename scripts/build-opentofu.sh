#!/usr/bin/env bash
# Builds OpenTofu from its Go module, for machines on which it is not installed, unless a binary of the wanted version
# exists.
#
# The acceptance tests use it where it differs from Terraform. Unlike Terraform's, the published module is complete.
#
#   SCHEDULER_TESTBED   directory of binaries and builds (default ~/.cache/scheduler-testbed)
#   OPENTOFU_VERSION    the module's version
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${OPENTOFU_VERSION:-v1.12.6}
module=github.com/opentofu/opentofu
binary=$testbed/bin/tofu

if ! shows "OpenTofu $version" "$binary" version; then
	building "OpenTofu ${version#v}"
	build=$testbed/build/opentofu-$version
	copy_module "$build" "$module@$version"
	go build -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$binary.new" ./cmd/tofu
	in_place "$binary"
	rm -rf "$build"
fi
echo "$binary"
