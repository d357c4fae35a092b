#!/bin/sh
# Runs after the package was installed or upgraded. Nothing is started: that is for the administrator to do.
set -e

systemd-sysusers scheduler-server.conf

# While an image is built, systemd does not run.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart scheduler-server.service
fi
