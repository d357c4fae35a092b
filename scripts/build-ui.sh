#!/usr/bin/env bash
# Bundles the page at /ui into ui/dist, from where the server's build embeds it. Does nothing if it is up to date.
#
# Without Node.js, or if its packages cannot be fetched, there is no page, and the server says how to get it. With
# CI=true that is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../ui"

absent() {
	echo "the page at /ui is not built: $1" >&2
	rm -f dist/*
	[[ -z ${CI:-} ]] || exit 1
	exit 0
}

major=$({ node --version 2>/dev/null || true; } | sed 's/^v\([0-9]*\).*/\1/')
((${major:-0} >= 20)) && command -v npm >/dev/null || absent 'it needs Node.js 20 or later, and npm'

# npm writes this file last. No package may run a program of its own when it is installed.
installed=node_modules/.package-lock.json
if ! [[ -e $installed && ! package-lock.json -nt $installed ]]; then
	npm ci --ignore-scripts --loglevel error >/dev/null || absent 'npm cannot install its packages'
	touch "$installed"
fi

if ! [[ -e dist/index.html ]] || [[ -n $(find src build.mjs "$installed" -newer dist/index.html -print -quit) ]]; then
	node build.mjs
fi
