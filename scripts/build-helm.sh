#!/usr/bin/env bash
# Builds helm from its Go module, for the chart and its tests, unless a binary of the wanted version exists.
#
#   SCHEDULER_TESTBED   directory of the binary (default ~/.cache/scheduler-testbed)
#   HELM_VERSION        the module's version
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${HELM_VERSION:-v4.3.1}
module=helm.sh/helm/${version%%.*}
binary=$testbed/bin/helm

if ! shows "$version" "$binary" version --template '{{.Version}}'; then
	building "helm $version"
	install_command "$binary" "$module/cmd/helm@$version" "-X $module/internal/version.version=$version"
fi
echo "$binary"
