#!/bin/sh
# Runs before the package is removed (Debian: remove, RPM: 0) or upgraded.
set -e

case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now scheduler-server.service
	fi
	;;
esac
