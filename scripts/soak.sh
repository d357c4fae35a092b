#!/usr/bin/env bash
# Runs the property tests, the integration tests, the faults, and the page on a large fleet, whose memory may not grow in
# half an hour, each time with another seed, until something fails or the time is over. Whatever fails is repeated with the seed that it printed.
#
#   scripts/soak.sh [seconds, default: no end]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-}
mapfile -t files < <(grep -rlE --include='*_test.go' '\b(rapid\.Check|seeded\.Rand)\(' internal server provider | sort)
names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t \*testing\.T).*/\1/p' "${files[@]}" | sort -u | paste -sd '|')
mapfile -t packages < <(dirname "${files[@]}" | sort -u | sed 's#^#./#')

rounds=0
while [[ -z $seconds ]] || ((SECONDS < seconds)); do
	seed=$(od -An -N7 -tu8 /dev/urandom | tr -d ' ')
	rounds=$((rounds + 1))
	echo "== round $rounds: SEED=$seed"
	trap 'echo "failed with SEED=$seed" >&2' EXIT
	RAPID_SEED=$seed RAPID_CHECKS=${RAPID_CHECKS:-1000} scripts/with-test-dir.sh \
		go test -count=1 -vet=off -timeout 4h -run "^($names)\$" "${packages[@]}"
	make test-integration SEED="$seed"
	make test-faults SEED="$seed"
	UI_CHURN=${UI_CHURN:-1800} scripts/with-test-dir.sh \
		go test -tags integration -vet=off -run '^$' -bench '^BenchmarkLargePage$' -benchtime 1x -timeout 4h ./internal/integration
	trap - EXIT
done
echo "$rounds rounds passed"
