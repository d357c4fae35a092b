#!/usr/bin/env bash
# Builds Alertmanager from its Go module, for `make test-gitops`, unless a binary of the wanted version exists.
#
#   SCHEDULER_TESTBED      directory of the binary (default ~/.cache/scheduler-testbed)
#   ALERTMANAGER_VERSION   the module's version (default v0.31.0)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${ALERTMANAGER_VERSION:-v0.31.0}
binary=$testbed/bin/alertmanager

if ! shows "version ${version#v}" "$binary" --version; then
	building "Alertmanager $version"
	install_command "$binary" "github.com/prometheus/alertmanager/cmd/alertmanager@$version" \
		"-X github.com/prometheus/common/version.Version=${version#v}"
fi
echo "$binary"
