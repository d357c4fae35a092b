#!/bin/sh
# Verifies files of a release: that the list of checksums is signed with the key of the project, and that the files are
# those in the list.
#
#   verify-download.sh KEY SHA256SUMS FILE...
#
# KEY is the public key, in a file that you did not get from where you got the release. SHA256SUMS is the list, with its
# signature beside it (SHA256SUMS.sig). The exit code is 0 only if everything is as it was released.
set -eu

[ $# -ge 3 ] || { echo 'usage: verify-download.sh KEY SHA256SUMS FILE...' >&2; exit 2; }
key=$1 sums=$2
shift 2

# A key ring with this key only: a signature by any other key that this machine trusts is worth nothing here.
ring=$(mktemp -d)
trap 'rm -rf "$ring"' EXIT
gpg --homedir "$ring" --batch --quiet --import "$key"
gpg --homedir "$ring" --batch --quiet --trust-model always --verify "$sums.sig" "$sums" ||
	{ echo "$sums is not signed with $key" >&2; exit 1; }

if command -v sha256sum >/dev/null; then digest='sha256sum'; else digest='shasum -a 256'; fi
for file; do
	name=$(basename "$file")
	want=$(awk -v name="$name" '$2 == name || $2 == "*" name {print $1}' "$sums")
	[ -n "$want" ] || { echo "$name is not in $sums" >&2; exit 1; }
	got=$($digest <"$file" | cut -d ' ' -f 1)
	[ "$got" = "$want" ] || { echo "$name is not what was released: its checksum is $got, not $want" >&2; exit 1; }
	echo "$name: OK"
done
