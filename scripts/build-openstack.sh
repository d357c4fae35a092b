#!/usr/bin/env bash
# Installs an OpenStack for the integration tests: the real services from Debian's packages, with drivers that need no
# hardware (scripts/openstack). Only the Python parts of the services are installed, so that none of them starts, asks
# questions or sets up a hypervisor. The few files that only the other packages contain are unpacked next to the
# state. Does nothing if everything is installed.
#
# It needs Debian 12, root and apt.
#
#   SCHEDULER_TESTBED   directory of its files and state (default ~/.cache/scheduler-testbed)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/openstack/env.sh"
export DEBIAN_FRONTEND=noninteractive

packages=(mariadb-server mariadb-client rabbitmq-server memcached uwsgi-core uwsgi-plugin-python3
	python3-keystone python3-nova python3-placement python3-cinder python3-neutron python3-glance python3-magnum
	python3-pymysql python3-openstacksdk python3-memcache python3-systemd)
unpacked=(keystone nova-common placement-common cinder-common neutron-common neutron-api glance-common glance-api magnum-common)

[[ $(id -u) == 0 ]] || { echo 'the OpenStack of the tests is installed and run by root' >&2; exit 1; }
installed=$(dpkg-query -W -f '${Status}\n' "${packages[@]}" 2>/dev/null | grep -cx 'install ok installed' || true)
if ((installed < ${#packages[@]})); then
	# The tests start the database and the message broker; installing them must not.
	if ! [[ -e /usr/sbin/policy-rc.d ]]; then
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	apt-get update -q
	apt-get -o DPkg::Lock::Timeout=900 install -q -y --no-install-recommends "${packages[@]}"
fi

if ! [[ -e $OSK/deb/complete ]]; then
	mkdir -p "$OSK/deb" "$OSK/dl"
	cd "$OSK/dl"
	apt-get -q download "${unpacked[@]}"
	for package in *.deb; do dpkg-deb -x "$package" "$OSK/deb"; done
	cd - >/dev/null
	rm -rf "$OSK/dl"
	touch "$OSK/deb/complete"
fi
echo "$OSK"
