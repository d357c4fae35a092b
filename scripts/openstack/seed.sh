#!/usr/bin/env bash
# Fills the running OpenStack with what the tests look at.
set -euo pipefail
. "$(dirname "$0")/env.sh"
SERVICES=$SERVICES exec /usr/bin/python3 "$HERE/seed.py"
