#!/usr/bin/env bash
# Makes the container image of the server, as the tarball of an OCI layout, from the binaries that "make release-dry-run"
# leaves in dist/. The same commit gives the same bytes.
#
#   build-image.sh [FILE]   where it is written (default dist/scheduler-server_VERSION_image.tar)
#
#   IMAGE_ARCHS         architectures, "amd64 arm64", say (default this one)
#   SOURCE_DATE_EPOCH   time of the files, in seconds since 1970 (default that of the commit)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() { echo "image: $*" >&2; exit 1; }

sums=$(echo "$root"/dist/*_SHA256SUMS)
[[ -e $sums ]] || fail 'there is no release in dist/: run make release-dry-run'
version=${sums##*/terraform-provider-scheduler_}
version=${version%_SHA256SUMS}
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
created=$(TZ=UTC0 printf '%(%Y-%m-%dT%H:%M:%SZ)T' "$epoch")
out=$(realpath -m "${1:-$root/dist/scheduler-server_${version}_image.tar}")

work=$(mktemp -d)
registry=
trap '[[ -z $registry ]] || kill "$registry"; rm -rf "$work"' EXIT

# quiet COMMAND...: shows its output when it fails.
quiet() { "$@" >"$work/log" 2>&1 || fail "$(<"$work/log")"; }

# archive MODE FILE DIRECTORY OWNER PATH...: the same bytes for the same files; modes are those of $work.
archive() { tar "$1" --file "$2" --directory "$3" --format=ustar --mtime="@$epoch" --owner="$4" --group="$4" --numeric-owner --no-recursion "${@:5}"; }

# crane puts images together in a registry: one in its memory, of which the first line names the port.
exec {log}< <(exec crane registry serve --address 127.0.0.1:0 2>&1)
registry=$!
read -r -u "$log" line
cat <&"$log" >/dev/null &
local=127.0.0.1:${line##* }
name=scheduler-server

images=()
for arch in ${IMAGE_ARCHS:-$(go env GOARCH)}; do
	binary=$(echo "$root/dist/server_linux_${arch}"_*/scheduler-server)
	[[ -e $binary ]] || fail "no server for linux/$arch in dist/: run make release-dry-run TARGETS=linux/$arch, or TARGETS=all"
	files=$work/$arch
	install -d -m 755 "$files" "$files"/{etc,usr,usr/bin,var,var/lib}
	install -m 755 "$binary" "$files/usr/bin/scheduler-server"
	ln -s scheduler-server "$files/usr/bin/schedulerctl"
	# New volumes get the owner of what they are mounted on.
	install -d -m 700 "$files"/{etc/scheduler,var/lib/scheduler}
	archive --create "$files.tar" "$files" 0 etc usr usr/bin usr/bin/scheduler-server usr/bin/schedulerctl var var/lib
	archive --append "$files.tar" "$files" 65532 etc/scheduler var/lib/scheduler
	quiet crane append --oci-empty-base --new_layer "$files.tar" --new_tag "$local/$name:$arch"
	# The user is a number, so that Kubernetes can tell that it is not root.
	quiet crane mutate "$local/$name:$arch" --tag "$local/$name:$arch" --set-platform "linux/$arch" --user 65532:65532 \
		--entrypoint scheduler-server --cmd serve,--config,/etc/scheduler/server.yaml --env PATH=/usr/bin --exposed-ports 8665/tcp \
		--label "org.opencontainers.image.title=$name" \
		--label 'org.opencontainers.image.description=Scheduling server for fleets of clusters' \
		--label org.opencontainers.image.licenses=MPL-2.0 \
		--label "org.opencontainers.image.version=$version" \
		--label "org.opencontainers.image.revision=$(git -C "$root" rev-parse HEAD)" \
		--label "org.opencontainers.image.created=$created"
	images+=(--manifest "$local/$name:$arch")
done
quiet crane index append "${images[@]}" --tag "$local/$name:$version"
quiet crane pull --format oci --annotate-ref "$local/$name:$version" "$work/layout"
# The name, as podman reads it, and as Docker does.
sed -i -E "s,\"(org.opencontainers.image.ref.name)\": \"$local/(.*)\",\"io.containerd.image.name\": \"localhost/\2\"\, \"\1\": \"localhost/\2\"," "$work/layout/index.json"
chmod -R u=rwX,go=rX "$work/layout"
(cd "$work/layout" && find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort) >"$work/names"
archive --create "$out" "$work/layout" 0 --files-from="$work/names"
echo "$out"
