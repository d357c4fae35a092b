#!/usr/bin/env bash
# Runs the tests of the files tagged `integration`, and only those: the others have run in `make test`.
#
# A component that a test needs and does not find is that test's failure, never a skip.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(grep -rlE --include='*_test.go' '^//go:build integration$' . | sort)
if ((${#files[@]} == 0)); then
	echo 'no file is tagged "//go:build integration": there is nothing to run' >&2
	exit 1
fi

names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t \*testing\.T).*/\1/p' "${files[@]}" | sort -u | paste -sd '|')
mapfile -t packages < <(dirname "${files[@]}" | sort -u)

# They wait most of the time, for each other's programs to start and for what follows: more of them than processors run
# side by side. Those that take the whole machine go first, one by one.
exec go test -tags integration -count=1 -p 2 -parallel 4 -timeout 45m -run "^($names)\$" "${packages[@]}"
