#!/usr/bin/env bash
# Builds a Terraform command line from its Go module, for machines that have none installed. Does nothing when a binary
# of the wanted version is already there.
#
# The acceptance tests, the demo and the documentation generator need a `terraform` that never has to be
# downloaded. The state backends for clouds are modules of their own which the published module refers to
# by directory, so they are left out; the local backend, all that is needed here, stays.
#
#   SCHEDULER_TESTBED   where binaries and build directories go (default ~/.cache/scheduler-testbed)
#   TERRAFORM_VERSION   the module's version
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${TERRAFORM_VERSION:-v1.16.3}
module=github.com/hashicorp/terraform
binary=$testbed/bin/terraform

if ! shows "Terraform $version" "$binary" version; then
	building "Terraform ${version#v}"
	build=$testbed/build/terraform-$version
	copy_module "$build" "$module@$version"
	# Everything the module replaces by a directory of its own repository is absent from the published module.
	while read -r path; do
		go mod edit -droprequire="$path" -dropreplace="$path"
		name=$(sed -n "s#^[[:space:]]*\([A-Za-z0-9]*\) \"$path\"\$#\1#p" internal/backend/init/init.go)
		if [[ -n $name ]]; then
			sed -i "/\b$name\b/d" internal/backend/init/init.go
		fi
	done < <(sed -n "s#^replace \($module/[^ ]*\) => \./.*#\1#p" go.mod)
	go build -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$binary.new" .
	in_place "$binary"
	rm -rf "$build"
fi
echo "$binary"
