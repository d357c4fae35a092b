#!/usr/bin/env bash
# Unpacks Debian's Chromium, with the libraries and a font that this machine lacks, for the tests of the page. Nothing is
# installed. Does nothing if there is a chromium already.
#
#   SCHEDULER_TESTBED   directory of the browser (default ~/.cache/scheduler-testbed)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/testbed.sh"

program=$testbed/bin/chromium
! command -v chromium >/dev/null || program=$(command -v chromium)
if [[ -x $program ]] && "$program" --version >/dev/null 2>&1; then
	echo "$program"
	exit
fi
program=$testbed/bin/chromium

building 'Chromium'
scratch=$(mktemp -d "$testbed/chromium.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/packages" "$scratch/root"
# The lists of packages may be missing, or older than what the mirror still has.
root=()
[[ $(id -u) == 0 ]] || root=(sudo)
"${root[@]}" apt-get update -q >/dev/null
# What apt would install, so that only what is missing is fetched.
mapfile -t packages < <(apt-get install -s --no-install-recommends chromium fonts-dejavu-core 2>/dev/null | awk '/^Inst/ {print $2}')
((${#packages[@]})) || { echo 'apt knows no chromium: run apt-get update, or install a Chromium' >&2; exit 1; }
(cd "$scratch/packages" && apt-get download "${packages[@]}" >/dev/null)
for package in "$scratch"/packages/*.deb; do dpkg-deb -x "$package" "$scratch/root"; done
rm -rf "$testbed/chromium"
mv "$scratch/root" "$testbed/chromium"
cat >"$testbed/chromium/fonts.conf" <<XML
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>$testbed/chromium/usr/share/fonts</dir>
  <cachedir>$testbed/chromium/font-cache</cachedir>
  <alias><family>sans</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <match target="pattern">
    <edit name="family" mode="append_last"><string>DejaVu Sans</string></edit>
  </match>
</fontconfig>
XML
cat >"$program.new" <<SH
#!/bin/bash
root=$testbed/chromium
libraries=\$root/usr/lib/x86_64-linux-gnu
[[ -d \$libraries ]] || libraries=\$root/usr/lib/aarch64-linux-gnu
export LD_LIBRARY_PATH=\$libraries:\$libraries/pulseaudio XDG_DATA_DIRS=\$root/usr/share:/usr/share FONTCONFIG_FILE=\$root/fonts.conf
exec "\$root/usr/lib/chromium/chromium" "\$@"
SH
chmod +x "$program.new"
in_place "$program"
"$program" --version
