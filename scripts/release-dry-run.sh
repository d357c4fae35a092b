#!/usr/bin/env bash
# Makes a release of the current commit in dist/, signed with a key that is thrown away, and checks it as those who
# download it do. A second one, made elsewhere, must have the same bytes. Nothing is published.
#
#   TARGETS   platforms, "linux/amd64", say, or "all" (default this one)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "release: $*" >&2; exit 1; }

work=$(mktemp -d)
export GNUPGHOME=$work/gnupg
trap 'gpgconf --kill all; rm -rf "$work"' EXIT
mkdir -m 700 "$GNUPGHOME" "$work/user"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Release dry run <release@example.com>' default default never 2>/dev/null
GPG_FINGERPRINT=$(gpg --batch --with-colons --list-keys | awk -F: '$1 == "fpr" {print $10; exit}')
export GPG_FINGERPRINT

targets=${TARGETS:-$(go env GOOS)/$(go env GOARCH)}
configuration=$work/goreleaser.yml
if [[ $targets == all ]]; then
	cp .goreleaser.yml "$configuration"
else
	sed -E "s,^(    goos:) .*,\1 [${targets%/*}],; s,^(    goarch:) .*,\1 [${targets#*/}]," .goreleaser.yml >"$configuration"
fi

# Without a remote, goreleaser would not ask git for the commit and its time.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://example.com/scheduler/scheduler.git

# make has bundled the page, and what the hooks verify is every module in the cache.
mkdir "$work/elsewhere"
tar -c --exclude=./bin --exclude=./dist --exclude=./ui/node_modules . | tar -x -C "$work/elsewhere"
goreleaser release --config "$configuration" --snapshot --clean --skip=before
(cd "$work/elsewhere" && goreleaser release --config "$configuration" --snapshot --skip=before,sign) >"$work/log" 2>&1 || fail "$(<"$work/log")"

cd dist
sums=$(echo *_SHA256SUMS)
diff "$sums" "$work/elsewhere/dist/$sums" || fail 'the same sources gave other bytes'

# What the Terraform registry reads.
version=${sums#terraform-provider-scheduler_}
version=${version%_SHA256SUMS}
manifest=terraform-provider-scheduler_${version}_manifest.json
cp ../terraform-registry-manifest.json "$manifest"
for archive in terraform-provider-scheduler_*.zip; do
	[[ $archive =~ ^terraform-provider-scheduler_${version}_[a-z0-9]+_[a-z0-9]+\.zip$ ]] || fail "$archive is not named as the registry expects"
	contents=$(unzip -Z1 "$archive")
	[[ ${contents%.exe} == "terraform-provider-scheduler_v$version" ]] || fail "$archive contains $contents"
done

# What the documentation tells users to do, with a key ring that has the public key alone.
gpg --batch --export | gpg --homedir "$work/user" --batch --quiet --import
gpg --homedir "$work/user" --batch --quiet --trust-model always --verify "$sums.sig" "$sums"
sha256sum --check --strict "$sums"
files=("$manifest" *.zip *.deb *.rpm *.cdx.json)
(($(wc -l <"$sums") == ${#files[@]})) || fail "$sums does not name these ${#files[@]} files alone: ${files[*]}"
