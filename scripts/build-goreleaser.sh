#!/usr/bin/env bash
# Builds what makes releases from Go modules, unless binaries of the wanted versions exist: goreleaser, and
# cyclonedx-gomod, which lists the modules that a binary was linked from.
#
#   SCHEDULER_TESTBED      directory of the binaries (default ~/.cache/scheduler-testbed)
#   GORELEASER_VERSION     the version of the module of goreleaser
#   CYCLONEDX_VERSION      the version of the module of cyclonedx-gomod
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${GORELEASER_VERSION:-v2.15.0}
binary=$testbed/bin/goreleaser
if ! shows "${version#v}" "$binary" --version; then
	building "goreleaser ${version#v}"
	install_command "$binary" "github.com/goreleaser/goreleaser/v2@$version" "-X main.version=${version#v}"
fi
echo "$binary"

version=${CYCLONEDX_VERSION:-v1.10.0}
binary=$testbed/bin/cyclonedx-gomod
if ! "$binary" version 2>/dev/null | grep -q "[[:space:]]$version\$"; then
	building "cyclonedx-gomod ${version#v}"
	install_command "$binary" "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$version" ''
fi
echo "$binary"
