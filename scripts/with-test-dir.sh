#!/usr/bin/env bash
# Runs a command whose TMPDIR and GOTMPDIR belong to it alone. What a run leaves there, because it was killed, the next
# one removes.
#
# As root, TMPDIR is a file system in memory, since most of what a test server would wait for is the disk. Only the command
# and what it starts see it, and the kernel removes it with the last of them. It holds half of the memory that is
# available; where that is less than 4 GiB, and for other users, it is a directory on the disk. In memory, it has the
# same name every time, so that results of tests stay in the cache.
#
# GOTMPDIR is always on the disk: a build syncs nothing, and needs much room. Tests prefer it to TMPDIR if they see it.
set -euo pipefail

dir=${TMPDIR:-/tmp}/scheduler-tests-$(id -u)
mkdir -p -m 700 "$dir"
[[ -O $dir ]] || { echo "$dir belongs to somebody else: remove it, or set TMPDIR" >&2; exit 1; }

# The directory of a run has the number of its process, which stays the same until the command has ended.
for left in "$dir"/[0-9]*; do
	[[ -d $left ]] && ! kill -0 "${left##*/}" 2>/dev/null && rm -rf "$left"
done
export GOTMPDIR=$dir/$$
mkdir -p -m 700 "$GOTMPDIR"

half=$(awk '$1 == "MemAvailable:" {print int($2 / 2)}' /proc/meminfo 2>/dev/null) || half=0
if [[ $(id -u) == 0 ]] && ((half >= 4 << 20)) && unshare --mount true 2>/dev/null; then
	export TMPDIR=$dir/memory
	mkdir -p -m 700 "$TMPDIR"
	exec unshare --mount bash -euo pipefail -c \
		'mount -t tmpfs -o "size=$0k,mode=700" scheduler-tests "$TMPDIR" && exec "$@"' "$half" "$@"
fi
TMPDIR=$GOTMPDIR exec "$@"
