#!/usr/bin/env bash
# Renders the plain Kubernetes manifests from the chart: render-manifests.sh DIRECTORY
set -euo pipefail
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
helm=$(scripts/build-helm.sh)

render() {
	local directory=$1
	shift
	mkdir -p "$directory"
	{
		echo '# Rendered from deploy/chart by "make manifests". kustomization.yaml names the image.'
		"$helm" template scheduler-server deploy/chart --namespace scheduler --set image.repository=scheduler-server "$@"
	} >"$directory/manifests.yaml"
}

render "$out/one-server" --set replicas=1
render "$out/three-servers" --set replicas=3
