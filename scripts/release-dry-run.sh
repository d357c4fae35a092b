#!/usr/bin/env bash
# Makes a release of the current commit in dist/, signed with a key that is thrown away, and checks it as those who
# download it do. Nothing is published.
#
#   TARGETS   "linux/amd64" (default) builds the archives for this platform only, "all" for every platform
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "release: $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'gpgconf --homedir "$work/gnupg" --kill all 2>/dev/null || true; rm -rf "$work"' EXIT

# new_key DIRECTORY makes a key without a passphrase, and exports its public part to DIRECTORY.asc.
new_key() {
	mkdir -m 700 "$1"
	gpg --homedir "$1" --batch --quiet --passphrase '' --quick-generate-key 'Release dry run <release@example.com>' default default never 2>/dev/null
	gpg --homedir "$1" --batch --armor --export >"$1.asc"
}
new_key "$work/gnupg"
fingerprint=$(gpg --homedir "$work/gnupg" --batch --with-colons --list-keys | awk -F: '$1 == "fpr" {print $10; exit}')

targets=${TARGETS:-linux/amd64}
configuration=.goreleaser.yml
if [[ $targets != all ]]; then
	configuration=$work/goreleaser.yml
	sed -E "s,^(    goos:) .*,\1 [${targets%/*}],; s,^(    goarch:) .*,\1 [${targets#*/}]," .goreleaser.yml >"$configuration"
	(($(grep -cE "^    goos: \[${targets%/*}\]$" "$configuration") == 3)) || fail "the builds in .goreleaser.yml have changed: adapt $0"
fi

make --no-print-directory packages image chart
# go mod verify, in the hooks, reads the whole module cache, and make has run.
GNUPGHOME=$work/gnupg GPG_FINGERPRINT=$fingerprint goreleaser release --config "$configuration" --snapshot --clean --skip=before

cd dist
sums=$(echo ./*_SHA256SUMS)
version=${sums#./terraform-provider-scheduler_}
version=${version%_SHA256SUMS}

# What the Terraform registry reads.
manifest=terraform-provider-scheduler_${version}_manifest.json
grep -qF " $manifest" "$sums" || fail "$manifest is not in $sums"
for archive in terraform-provider-scheduler_*.zip; do
	[[ $archive =~ ^terraform-provider-scheduler_${version}_[a-z0-9]+_[a-z0-9]+\.zip$ ]] || fail "$archive is not named as the registry expects"
	contents=$(unzip -Z1 "$archive")
	[[ $contents == "terraform-provider-scheduler_v$version" || $contents == "terraform-provider-scheduler_v$version.exe" ]] || fail "$archive contains $contents"
done

# Everything is in the list, under its own name.
files=(*.zip *.cdx.json ../bin/packages/* ../bin/image/* ../bin/chart/*.tgz ../deploy/verify-download.sh)
cp ../terraform-registry-manifest.json "$work/$manifest"
../deploy/verify-download.sh "$work/gnupg.asc" "$sums" "${files[@]}" "$work/$manifest"
(($(wc -l <"$sums") == ${#files[@]} + 1)) || fail "$sums has $(wc -l <"$sums") files, want $((${#files[@]} + 1))"

# What is not as it was released is found.
refused() {
	! ../deploy/verify-download.sh "$@" >"$work/verify.log" 2>&1 || fail "accepted: $*"
}
archive=$(echo scheduler-server_*_linux_amd64.zip)
cp "$archive" "$work/"
printf x >>"$work/$archive"
refused "$work/gnupg.asc" "$sums" "$work/$archive"
refused "$work/gnupg.asc" "$sums" ../README.md
cp "$sums" "$sums.sig" "$work/"
(cd "$work" && sha256sum "$archive") >>"$work/$sums"
refused "$work/gnupg.asc" "$work/$sums" "$archive"
new_key "$work/other"
refused "$work/other.asc" "$sums" "$archive"
gpgconf --homedir "$work/other" --kill all

echo "the release $version in dist/ is complete: ${#files[@]} files"
