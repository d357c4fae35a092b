#!/usr/bin/env bash
# Builds Terraform from its Go module, for machines on which it is not installed, unless a binary of the wanted version
# exists.
#
# The acceptance tests, the demo and the documentation generator need a `terraform` that need not be downloaded. The
# state backends for clouds are separate modules, to which the published module refers by directory, so they are left
# out. The local backend, the only one needed here, is included.
#
#   SCHEDULER_TESTBED   directory of binaries and builds (default ~/.cache/scheduler-testbed)
#   TERRAFORM_VERSION   the module's version
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

version=${TERRAFORM_VERSION:-v1.15.0}
module=github.com/hashicorp/terraform
binary=$testbed/bin/terraform

if ! shows "Terraform $version" "$binary" version; then
	building "Terraform ${version#v}"
	build=$testbed/build/terraform-$version
	copy_module "$build" "$module@$version"
	# The published module lacks everything that it replaces by a directory in its repository.
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
