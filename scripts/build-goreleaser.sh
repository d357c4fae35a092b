#!/usr/bin/env bash
# Builds goreleaser from its Go module, for releases, unless a binary of the wanted version exists.
#
#   SCHEDULER_TESTBED    directory of the binary (default ~/.cache/scheduler-testbed)
#   GORELEASER_VERSION   the module's version
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${GORELEASER_VERSION:-v2.15.0}
binary=$testbed/bin/goreleaser

if ! shows "${version#v}" "$binary" --version; then
	building "goreleaser $version"
	install_command "$binary" "github.com/goreleaser/goreleaser/v2@$version" "-X main.version=${version#v}"
fi
echo "$binary"
