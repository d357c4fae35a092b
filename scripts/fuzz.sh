#!/usr/bin/env bash
# Runs every fuzz target for a short while. `go test -fuzz` takes one target at a time and links the tests of the
# package for each: here they are linked once for all targets of a package,
# without what only debuggers read.
#
# Before Go 1.27 the fuzzing engine may report the end of its own time as a failure (go.dev/issue/75804): the
# only message is "context deadline exceeded", and no failing input is written. Such a run is made once more,
# and counts then. A target that fails names its input.
#
#   scripts/fuzz.sh [time per target, default 10s]
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:-10s}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log

# What go test would run: in the package's directory, with the cache of its inputs.
fuzz() {
	(cd "$1" && "$scratch/test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$fuzztime" \
		-test.fuzzcachedir "$(go env GOCACHE)/fuzz/$(go list .)") </dev/null 2>&1 | tee "$log"
}

ran_out_of_time() {
	grep -qx '    context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"
}

built=
grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . | sort |
	sed 's#^\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*#\1 \2#' |
	while read -r package target; do
		echo "$package $target"
		if [[ $package != "$built" ]]; then
			go test -c -fuzz . -ldflags '-s -w' -o "$scratch/test" "$package" </dev/null
			built=$package
		fi
		if ! fuzz "$package" "$target"; then
			ran_out_of_time || exit 1
			fuzz "$package" "$target"
		fi
	done
