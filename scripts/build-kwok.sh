#!/usr/bin/env bash
# Builds kwok from its Go module, which plays the kubelets of the integration tests: nodes and pods become
# ready, and end, without a container. Beside it goes a file with the stages they pass through. Does nothing when a
# binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED   where the binary and the file go (default ~/.cache/scheduler-testbed)
#   KWOK_VERSION        the module's version (default v0.8.0)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${KWOK_VERSION:-v0.8.0}
module=sigs.k8s.io/kwok
binary=$testbed/bin/kwok
stages=$testbed/bin/kwok-stages.yaml
# What a node goes through, and the end of a pod. Its beginning is in internal/integration/testdata/kwok.
parts=(
	node/fast/node-initialize
	node/heartbeat-with-lease/node-heartbeat-with-lease
	node/chaos/node-not-ready
	pod/fast/pod-complete
	pod/fast/pod-delete
)
heading="# $module $version: ${parts[*]}"

if ! shows "kwok version $version" "$binary" --version; then
	building "kwok $version"
	install_command "$binary" "$module/cmd/kwok@$version" "-X $module/pkg/consts.Version=$version"
fi

if [[ ! -e $stages ]] || [[ $(head -n 1 "$stages") != "$heading" ]]; then
	directory=$(module_path Dir "$module@$version")
	{
		echo "$heading"
		for part in "${parts[@]}"; do
			echo ---
			cat "$directory/kustomize/stage/$part.yaml"
		done
	} >"$stages.new"
	in_place "$stages"
fi
printf '%s\n' "$binary" "$stages"
