# Sourced by the scripts that build programs for the tests from their Go modules.
#
# They need nothing but Go: modules are taken through the module proxy Go is configured with and checked against the
# checksum database. SCHEDULER_TESTBED names the directory that programs, and what is left of their builds, go to.

testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
mkdir -p "$testbed/bin"

# The caller's flags may name another module file or a vendor directory; these builds have their own.
export GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0

# shows TEXT COMMAND...: whether a program is there and prints a text, between spaces or the ends of a line.
shows() {
	local text=${1//./\\.}
	shift
	[[ -x $1 ]] && CHECKPOINT_DISABLE=1 "$@" 2>&1 | grep -E "(^| )$text( |\$)" >/dev/null
}

building() { echo "building $*; this takes some minutes" >&2; }

# module_path FIELD MODULE@VERSION: where the module cache has a module (Dir), or its go.mod alone (GoMod).
module_path() { (cd / && go mod download -json "$2") | sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"; }

# in_place PROGRAM: moves PROGRAM.new there. Nothing but complete programs are there: an interrupted build must not
# look like a finished one.
in_place() { mv "$1.new" "$1"; }

# install_command PROGRAM PACKAGE@VERSION LDFLAGS builds a program whose module replaces no other.
install_command() (
	scratch=$(mktemp -d "$testbed/bin/install.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	GOBIN=$scratch go install -trimpath -ldflags "-s -w $3" "$2"
	mv "$scratch"/* "$1"
)

# copy_module DIRECTORY MODULE@VERSION goes to a copy of a module: a build may complete go.sum, and the module cache is
# not to be written.
copy_module() {
	local source
	source=$(module_path Dir "$2")
	rm -rf "$1"
	mkdir -p "$(dirname "$1")"
	cp -r "$source" "$1"
	chmod -R u+w "$1"
	cd "$1"
	export GOFLAGS="-mod=mod -buildvcs=false"
}

# scratch_module DIRECTORY PACKAGE...: goes to a module that imports these packages. Its go.mod is read from stdin. That
# is for modules with replace directives, which `go install module@version` refuses.
scratch_module() {
	mkdir -p "$1"
	cd "$1"
	shift
	cat >go.mod
	{
		printf '//go:build scratch\n\npackage scratch\n\n'
		printf 'import _ "%s"\n' "$@"
	} >import.go
	export GOFLAGS="-mod=mod -buildvcs=false"
	go mod tidy >tidy.log 2>&1 || {
		tail -n 20 tidy.log >&2
		return 1
	}
}
