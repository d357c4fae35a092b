#!/bin/sh
# Runs after the package was removed. The data in /var/lib/scheduler stays, and so does the user that owns it.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
