#!/usr/bin/env bash
# Creates the objects in the running OpenStack that the tests use.
set -euo pipefail
. "$(dirname "$0")/env.sh"
SERVICES=$SERVICES exec /usr/bin/python3 "$HERE/seed.py"
