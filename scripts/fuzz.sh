#!/usr/bin/env bash
# Runs every fuzz target for a short while: `go test -fuzz` takes one target of one package at a time.
#
#   scripts/fuzz.sh [time per target, default 10s]
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:-10s}
grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . | sort |
	sed 's#^\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*#\1 \2#' |
	while read -r package target; do
		echo "$package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package" </dev/null
	done
