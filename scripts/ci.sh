#!/usr/bin/env bash
# Runs .ci/run as CI does: on a new clone of HEAD, with an empty environment and no standard input.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -z $(git status --porcelain) ]] || echo 'what is not committed is not checked' >&2
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone -q --no-checkout . "$clone"
git -C "$clone" checkout -q --detach "$(git rev-parse HEAD)"
env -i HOME="$HOME" PATH="$PATH" CI=true bash "$clone/.ci/run" </dev/null
