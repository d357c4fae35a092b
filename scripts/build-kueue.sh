#!/usr/bin/env bash
# Builds Kueue from its Go module, for `make test-gitops`, unless a binary of the wanted version exists. Beside it are
# the definitions of its resources.
#
#   SCHEDULER_TESTBED   directory of the binary and the build (default ~/.cache/scheduler-testbed)
#   KUEUE_VERSION       the module's version (default v0.19.2)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${KUEUE_VERSION:-v0.19.2}
module=sigs.k8s.io/kueue
binary=$testbed/bin/kueue
definitions=$testbed/bin/kueue-crds

# The definitions, which are copied after the program, are marked with its version.
if [[ ! -x $binary || ! -e $definitions/$version ]]; then
	building "Kueue $version"
	(
		copy_module "$testbed/build/kueue-$version" "$module@$version"
		go build -trimpath -ldflags "-s -w -X $module/pkg/version.GitVersion=$version" -o "$binary.new" ./cmd/kueue
		rm -rf "$definitions.new"
		mkdir -p "$definitions.new"
		install -m 644 config/components/crd/bases/*.yaml "$definitions.new/"
		touch "$definitions.new/$version"
	)
	in_place "$binary"
	rm -rf "$definitions"
	in_place "$definitions"
fi
printf '%s\n' "$binary" "$definitions"
