#!/usr/bin/env bash
# Builds the ApplicationSet controller of Argo CD from its Go module, for `make test-gitops`, unless a binary of the
# wanted version exists. Beside it are the definitions of its resources.
#
# Later versions cannot be built from a module proxy: they replace a module by a directory of their repository.
#
#   SCHEDULER_TESTBED   directory of the binary and the build (default ~/.cache/scheduler-testbed)
#   ARGOCD_VERSION      the module's version (default v3.2.12)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${ARGOCD_VERSION:-v3.2.12}
module=github.com/argoproj/argo-cd/v3
binary=$testbed/bin/argocd-applicationset-controller
definitions=$testbed/bin/argocd-crds

# The program does not print its version: the definitions, which are copied after it, are marked with it.
if [[ ! -x $binary || ! -e $definitions/$version ]]; then
	building "the ApplicationSet controller of Argo CD $version"
	(
		gomod=$(module_path GoMod "$module@$version")
		scratch_module "$testbed/build/argocd-$version" "$module/cmd/argocd-applicationset-controller/commands" < <(
			echo "module scratch/argocd"
			echo
			grep -E '^go ' "$gomod"
			echo
			echo "require $module $version"
			sed -n -e '/^replace (/,/^)/p' -e '/^replace [^(]/p' "$gomod"
		)
		# Argo CD's own main package has all of its programs in one, with all of their dependencies.
		cat >main.go <<-'GO'
			package main

			import (
				"os"

				command "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
			)

			func main() {
				if command.NewCommand().Execute() != nil {
					os.Exit(1)
				}
			}
		GO
		go build -trimpath -ldflags "-s -w" -o "$binary.new" .
	)
	in_place "$binary"
	directory=$(module_path Dir "$module@$version")
	rm -rf "$definitions" "$definitions.new"
	mkdir -p "$definitions.new"
	install -m 644 "$directory"/manifests/crds/{application,applicationset,appproject}-crd.yaml "$definitions.new/"
	touch "$definitions.new/$version"
	in_place "$definitions"
fi
printf '%s\n' "$binary" "$definitions"
