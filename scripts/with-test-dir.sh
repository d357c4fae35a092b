#!/usr/bin/env bash
# Runs a command with a TMPDIR that goes when the command is over.
#
# As root, it is a file system in memory, since most of what a test server would wait for is the disk. Only the command
# and what it starts see it, and the kernel removes it with the last of them, also if they are killed. It holds half of
# the memory that is available; where that is less than 4 GiB, and for other users, it is a directory on the disk.
# Directories of killed runs are removed by the next one.
#
# In memory, it has the same name every time, so that results of tests stay in the cache.
set -euo pipefail

dir=${TMPDIR:-/tmp}/scheduler-tests-$(id -u)
mkdir -p -m 700 "$dir"
[[ -O $dir ]] || { echo "$dir belongs to somebody else: remove it, or set TMPDIR" >&2; exit 1; }

# Programs are built outside: a build syncs nothing, and needs much room.
export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}}

half=$(awk '$1 == "MemAvailable:" {print int($2 / 2)}' /proc/meminfo 2>/dev/null) || half=0
if [[ $(id -u) == 0 ]] && ((half >= 4 << 20)) && unshare --mount true 2>/dev/null; then
	TMPDIR=$dir exec unshare --mount bash -euo pipefail -c \
		'mount -t tmpfs -o "size=$0k,mode=700" scheduler-tests "$TMPDIR" && exec "$@"' "$half" "$@"
fi

# Each run has a directory with the number of its process.
for left in "$dir"/*; do
	[[ -d $left ]] && ! kill -0 "${left##*/}" 2>/dev/null && rm -rf "$left"
done
export TMPDIR=$dir/$$
mkdir -m 700 "$TMPDIR"
trap 'rm -rf "$TMPDIR"' EXIT
"$@"
