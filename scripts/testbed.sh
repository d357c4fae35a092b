# Sourced by the scripts that build programs for the tests from their Go modules.
#
# They only need Go: modules come from the configured module proxy and are verified with the checksum database.
# SCHEDULER_TESTBED is the directory of the programs and their builds.

testbed=${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}
mkdir -p "$testbed/bin"

# The caller's flags may select another module file or a vendor directory; these builds use their own.
export GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=0

# shows TEXT COMMAND... succeeds if a program exists and prints the text as a separate word.
shows() {
	local text=${1//./\\.}
	shift
	[[ -x $1 ]] && CHECKPOINT_DISABLE=1 "$@" 2>&1 | grep -E "(^| )$text( |\$)" >/dev/null
}

building() { echo "building $*; this takes some minutes" >&2; }

# module_path FIELD MODULE@VERSION prints the path of a module in the module cache (Dir), or only of its go.mod (GoMod).
module_path() { (cd / && go mod download -json "$2") | sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"; }

# in_place PROGRAM renames PROGRAM.new to PROGRAM, so that an interrupted build never looks like a finished one.
in_place() { mv "$1.new" "$1"; }

# install_command PROGRAM PACKAGE@VERSION LDFLAGS builds a program whose module has no replace directives.
install_command() (
	scratch=$(mktemp -d "$testbed/bin/install.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	GOBIN=$scratch go install -trimpath -ldflags "-s -w $3" "$2"
	mv "$scratch"/* "$1"
)

# copy_module DIRECTORY MODULE@VERSION changes to a copy of a module, because a build may update go.sum, and the module
# cache must not be modified.
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

# scratch_module DIRECTORY PACKAGE... changes to a new module that imports these packages, with its go.mod from stdin.
# This is for modules with replace directives, which `go install module@version` rejects.
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
