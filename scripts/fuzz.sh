#!/usr/bin/env bash
# Runs every fuzz target for a short while, or for a number of inputs: 10s, 1000x. `go test -fuzz` takes one target
# at a time and links the tests of the package for each. Here every package is linked once.
#
# Only our own packages are instrumented for coverage. go test would also instrument the libraries and the standard
# library: a separate build of everything, which runs ten times slower.
#
# Inputs that increase coverage are not minimized, which could take a minute for each and use up a short run.
#
# Before Go 1.27, the fuzzing engine may report the end of its time limit as a failure (go.dev/issue/75804): the only
# message is "context deadline exceeded", and no failing input is written. Such a run is repeated once. A target that
# really fails names its input.
#
#   scripts/fuzz.sh [time or number of inputs per target, default 10s]
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:-10s}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log

mapfile -t targets < <(grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . | sort |
	sed 's#^\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*#\1 \2#')
mapfile -t packages < <(printf '%s\n' "${targets[@]% *}" | sort -u)
go test -c -vet=off -gcflags "$(go list -m)/...=-d=libfuzzer" -ldflags '-s -w' -o "$scratch/" "${packages[@]}"
inputs=$(go env GOCACHE)/fuzz/$(go list -m)

# Runs a target as go test would: in the package's directory, with its input cache.
fuzz() {
	(cd "$1" && "$scratch/${1##*/}.test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$fuzztime" \
		-test.fuzzminimizetime 0x -test.fuzzcachedir "$inputs/${1#./}") </dev/null 2>&1 | tee "$log"
}

ran_out_of_time() {
	grep -qx '    context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"
}

for target in "${targets[@]}"; do
	read -r package name <<<"$target"
	echo "$target"
	if ! fuzz "$package" "$name"; then
		ran_out_of_time || exit 1
		fuzz "$package" "$name"
	fi
done
