#!/usr/bin/env bash
# Builds the Kubernetes control plane from its Go module, for the integration tests, unless binaries of the wanted
# version exist.
#
#   SCHEDULER_TESTBED    directory of binaries and builds (default ~/.cache/scheduler-testbed)
#   KUBERNETES_VERSION   the module's version
#   KUBERNETES_COMMANDS  the commands of k8s.io/kubernetes/cmd to build
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${KUBERNETES_VERSION:-v1.37.1}
read -ra commands <<<"${KUBERNETES_COMMANDS:-kube-apiserver kube-controller-manager kube-scheduler}"
module=k8s.io/kubernetes

missing=()
for command in "${commands[@]}"; do
	shows "Kubernetes $version" "$testbed/bin/$command" --version || missing+=("$command")
done
if ((${#missing[@]})); then
	building "${missing[*]} of Kubernetes $version"
	# The module replaces some of its dependencies by directories in its repository (./staging/src/...). These are also
	# published as separate modules, v1.x.y as v0.x.y, which the scratch module uses.
	gomod=$(module_path GoMod "$module@$version")
	scratch_module "$testbed/build/kubernetes-$version" "${commands[@]/#/$module/cmd/}" < <(
		echo "module scratch/kubernetes"
		echo
		grep -E '^(go|godebug) ' "$gomod"
		echo
		echo "require $module $version"
		echo
		sed -nE "s,^[[:space:]]+(k8s\.io/[a-z0-9/-]+) => \./staging/.*,replace \1 => \1 v0.${version#v1.},p" "$gomod"
	)
	minor=${version#v1.}
	stamp=""
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
	done
	for command in "${missing[@]}"; do
		go build -trimpath -ldflags "-s -w$stamp" -o "$testbed/bin/$command.new" "$module/cmd/$command"
		in_place "$testbed/bin/$command"
	done
fi
printf '%s\n' "${commands[@]/#/$testbed/bin/}"
