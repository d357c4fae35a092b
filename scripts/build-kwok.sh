#!/usr/bin/env bash
# Builds kwok from its Go module, which plays the kubelets of the integration tests: nodes and pods become
# ready, and end, without a container. Beside it goes a file with the stages they pass through.
#
# It needs nothing but Go: the module is taken through the module proxy Go is configured with and checked
# against the checksum database. Does nothing when a binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED   where the binary and the file go (default ~/.cache/scheduler-testbed)
#   KWOK_VERSION        the module's version (default v0.8.0)
set -euo pipefail

version=${KWOK_VERSION:-v0.8.0}
testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
module=sigs.k8s.io/kwok
binary=$testbed/bin/kwok
stages=$testbed/bin/kwok-stages.yaml
# What a node goes through, and the end of a pod. Its beginning is in integration/testdata/kwok.
parts=(
	node/fast/node-initialize
	node/heartbeat-with-lease/node-heartbeat-with-lease
	node/chaos/node-not-ready
	pod/fast/pod-complete
	pod/fast/pod-delete
)
heading="# $module $version: ${parts[*]}"

# The caller's flags may name another module file or a vendor directory; this build has its own.
export GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0

mkdir -p "$testbed/bin"
if [[ ! -x $binary ]] || ! "$binary" --version 2>/dev/null | grep -qF "kwok version $version "; then
	scratch=$(mktemp -d "$testbed/bin/kwok.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	echo "building kwok $version; this takes some minutes" >&2
	GOBIN=$scratch go install -trimpath -ldflags "-s -w -X $module/pkg/consts.Version=$version" "$module/cmd/kwok@$version"
	# Moved into place only when complete: an interrupted build must not look like a finished one.
	mv "$scratch/kwok" "$binary"
fi

if [[ ! -e $stages ]] || [[ $(head -n 1 "$stages") != "$heading" ]]; then
	directory=$(go mod download -json "$module@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
	{
		echo "$heading"
		for part in "${parts[@]}"; do
			echo ---
			cat "$directory/kustomize/stage/$part.yaml"
		done
	} >"$stages.new"
	mv "$stages.new" "$stages"
fi
printf '%s\n' "$binary" "$stages"
