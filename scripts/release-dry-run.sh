#!/usr/bin/env bash
# Makes a release of the current commit in dist/. Nothing is published.
#
#   TARGETS   "linux/amd64", say, for this platform only, "all" for every platform (default this one)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

targets=${TARGETS:-$(go env GOOS)/$(go env GOARCH)}
configuration=.goreleaser.yml
if [[ $targets != all ]]; then
	configuration=$work/goreleaser.yml
	sed -E "s,^(    goos:) .*,\1 [${targets%/*}],; s,^(    goarch:) .*,\1 [${targets#*/}]," .goreleaser.yml >"$configuration"
fi

# make has bundled the page, and what the hooks verify is every module in the cache.
goreleaser release --config "$configuration" --snapshot --clean --skip=before,sign
