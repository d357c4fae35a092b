#!/usr/bin/env bash
# Runs the tests in files tagged `integration`, and only those: `make test` runs the others.
#
# If a component is missing, the tests that need it fail; they are not skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(grep -rlE --include='*_test.go' '^//go:build integration$' . | sort)
if ((${#files[@]} == 0)); then
	echo 'no file is tagged "//go:build integration": there is nothing to run' >&2
	exit 1
fi

names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t \*testing\.T).*/\1/p' "${files[@]}" | sort -u | paste -sd '|')
mapfile -t packages < <(dirname "${files[@]}" | sort -u)

# Most tests mainly wait, so more of them run in parallel than there are processors. Those that use the whole machine
# run first, one by one.
exec go test -tags integration -count=1 -p 2 -parallel 4 -timeout 45m -run "^($names)\$" "${packages[@]}"
