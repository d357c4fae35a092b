#!/usr/bin/env bash
# Builds a Terraform command line from its Go module, for machines that have none installed.
#
# The acceptance tests, the demo and the documentation generator need a `terraform` that never has to be
# downloaded. The state backends for clouds are modules of their own which the published module refers to
# by directory, so they are left out; the local backend, all that is needed here, stays.
# Does nothing when a binary of the wanted version is already there.
#
#   SCHEDULER_TESTBED   where binaries and build directories go (default ~/.cache/scheduler-testbed)
#   TERRAFORM_VERSION   the module's version
set -euo pipefail

version=${TERRAFORM_VERSION:-v1.15.0}
testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
module=github.com/hashicorp/terraform
binary=$testbed/bin/terraform

if [[ -x $binary ]] && CHECKPOINT_DISABLE=1 "$binary" version 2>/dev/null | grep -qxF "Terraform $version"; then
	echo "$binary"
	exit 0
fi

# The caller's flags may name another module file or a vendor directory; this build has its own.
export GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0

build=$testbed/build/terraform-$version
mkdir -p "$testbed/bin" "$testbed/build"
source=$(cd "$testbed/build" && GOFLAGS=-buildvcs=false go mod download -json "$module@$version" |
	sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
rm -rf "$build"
cp -r "$source" "$build"
chmod -R u+w "$build"
cd "$build"

# Everything the module replaces by a directory of its own repository is absent from the published module.
while read -r path; do
	go mod edit -droprequire="$path" -dropreplace="$path"
	name=$(sed -n "s#^[[:space:]]*\([A-Za-z0-9]*\) \"$path\"\$#\1#p" internal/backend/init/init.go)
	if [[ -n $name ]]; then
		sed -i "/\b$name\b/d" internal/backend/init/init.go
	fi
done < <(sed -n "s#^replace \($module/[^ ]*\) => \./.*#\1#p" go.mod)

echo "building Terraform ${version#v}; this takes some minutes" >&2
go build -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$binary.new" .
# Moved into place only when complete: an interrupted build must not look like a finished one.
mv "$binary.new" "$binary"
rm -rf "$build"
echo "$binary"
