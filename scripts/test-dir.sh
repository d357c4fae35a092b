#!/usr/bin/env bash
# Prints the directory in which tests keep their data, and makes it: in memory where 4 GiB of it are free, since
# most of what a test server would wait for is the disk; under TMPDIR otherwise.
#
# It has the same name every time, so that results of tests stay in the cache. What an interrupted run left
# there is removed after a day.
set -euo pipefail

place=${TMPDIR:-/tmp}
if [[ -w /dev/shm ]] && free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $4}') && ((free >= 4 << 20)); then
	place=/dev/shm
fi
dir=$place/scheduler-tests-$(id -u)
mkdir -p -m 700 "$dir"
find "$dir" -mindepth 1 -maxdepth 1 -mtime +0 -exec rm -rf {} +
echo "$dir"
