#!/usr/bin/env bash
# Builds crane from its Go module, which makes the container image, unless a binary of the wanted version exists.
#
#   SCHEDULER_TESTBED   directory of the binary (default ~/.cache/scheduler-testbed)
#   CRANE_VERSION       the module's version
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${CRANE_VERSION:-v0.22.1}
module=github.com/google/go-containerregistry
binary=$testbed/bin/crane
if ! shows "${version#v}" "$binary" version; then
	building "crane ${version#v}"
	install_command "$binary" "$module/cmd/crane@$version" "-X $module/cmd/crane/cmd.Version=${version#v}"
fi
echo "$binary"
