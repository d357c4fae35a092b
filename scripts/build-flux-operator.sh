#!/usr/bin/env bash
# Builds flux-operator from its Go module, for `make test-gitops`, unless a binary of the wanted version exists. Beside
# it are the definitions of its resources.
#
#   SCHEDULER_TESTBED       directory of the binary and the build (default ~/.cache/scheduler-testbed)
#   FLUX_OPERATOR_VERSION   the module's version (default v0.58.1)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${FLUX_OPERATOR_VERSION:-v0.58.1}
module=github.com/controlplaneio-fluxcd/flux-operator
binary=$testbed/bin/flux-operator
definitions=$testbed/bin/flux-operator-crds

# The program does not print its version: the definitions, copied after it, are marked with it.
if [[ ! -x $binary || ! -e $definitions/$version ]]; then
	building "flux-operator $version"
	(
		copy_module "$testbed/build/flux-operator-$version" "$module@$version"
		# The page is built by npm, and is not part of the module.
		mkdir -p web/dist
		[[ -e web/dist/index.html ]] || echo >web/dist/index.html
		# Required by a version that only its repository has.
		keychain=github.com/google/go-containerregistry/pkg/authn/kubernetes
		go mod edit -replace "$keychain=$keychain@v0.0.0-20260224031529-85f2bf5f7303"
		go build -trimpath -ldflags "-s -w -X main.VERSION=$version" -o "$binary.new" ./cmd/operator
		rm -rf "$definitions.new"
		mkdir -p "$definitions.new"
		install -m 644 config/crd/bases/*.yaml "$definitions.new/"
		touch "$definitions.new/$version"
	)
	in_place "$binary"
	rm -rf "$definitions"
	in_place "$definitions"
fi
printf '%s\n' "$binary" "$definitions"
