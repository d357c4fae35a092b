#!/usr/bin/env bash
# Builds the control plane of Kubernetes from its Go module, for the integration tests. Does nothing when binaries of the
# wanted version are already there.
#
#   SCHEDULER_TESTBED    where binaries and build directories go (default ~/.cache/scheduler-testbed)
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
	# The module has its own parts from directories beside it (./staging/src/...). They are published as modules
	# of their own as well, v1.x.y as v0.x.y, and a scratch module takes them from there.
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
