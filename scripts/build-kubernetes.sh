#!/usr/bin/env bash
# Builds the control plane of Kubernetes from its Go module, for the integration tests.
#
# It needs nothing but Go: the modules are taken through the module proxy Go is configured with and checked
# against the checksum database. Does nothing when a binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED    where binaries and build directories go (default ~/.cache/scheduler-testbed)
#   KUBERNETES_VERSION   the module's version
#   KUBERNETES_COMMANDS  the commands of k8s.io/kubernetes/cmd to build
set -euo pipefail

version=${KUBERNETES_VERSION:-v1.37.1}
testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
read -ra commands <<<"${KUBERNETES_COMMANDS:-kube-apiserver kube-controller-manager kube-scheduler}"
module=k8s.io/kubernetes

missing=()
for command in "${commands[@]}"; do
	binary=$testbed/bin/$command
	if [[ ! -x $binary ]] || ! "$binary" --version 2>/dev/null | grep -qxF "Kubernetes $version"; then
		missing+=("$command")
	fi
done
if ((${#missing[@]} == 0)); then
	printf '%s\n' "${commands[@]/#/$testbed/bin/}"
	exit 0
fi

# The caller's flags may name another module file or a vendor directory; this build has its own.
export GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0

build=$testbed/build/kubernetes-$version
mkdir -p "$build" "$testbed/bin"
cd "$build"

# The module has its own parts from directories beside it (./staging/src/...). They are published as modules
# of their own as well, v1.x.y as v0.x.y, and a scratch module takes them from there.
gomod=$(GOFLAGS=-buildvcs=false go mod download -json "$module@$version" |
	sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",\{0,1\}$/\1/p')
{
	echo "module scratch/kubernetes"
	echo
	grep -E '^(go|godebug) ' "$gomod"
	echo
	echo "require $module $version"
	echo
	sed -nE "s,^[[:space:]]+(k8s\.io/[a-z0-9/-]+) => \./staging/.*,replace \1 => \1 v0.${version#v1.},p" "$gomod"
} >go.mod
{
	echo "//go:build scratch"
	echo
	echo "package scratch"
	echo
	for command in "${commands[@]}"; do echo "import _ \"$module/cmd/$command\""; done
} >import.go

echo "building ${missing[*]} of Kubernetes $version; this takes some minutes" >&2
go mod tidy >tidy.log 2>&1 || { tail -n 20 tidy.log >&2; exit 1; }
minor=${version#v1.}
stamp=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
done
for command in "${missing[@]}"; do
	go build -trimpath -ldflags "-s -w$stamp" -o "$testbed/bin/$command.new" "$module/cmd/$command"
	# Moved into place only when complete: an interrupted build must not look like a finished one.
	mv "$testbed/bin/$command.new" "$testbed/bin/$command"
done
printf '%s\n' "${commands[@]/#/$testbed/bin/}"
