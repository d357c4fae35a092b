#!/usr/bin/env bash
# Measures `terraform plan` of many placements with a server on this machine: wall time, the CPU time of Terraform, the
# provider and the server, and the provider's peak memory. Needs GNU time.
#
#   scripts/plan-speed.sh [BLOCKSxCOUNT ...]    default 1x1000 10x100 50x100; RUNS plans each (default 3)
#   BASE=/path/to/another/provider              also measures this provider, in the same run
#
# Terraform writes the whole state after each object. To measure 5,000 objects within minutes, they are applied in parts
# of PART blocks (default 10), each with a separate state; the plans use all of them in one state.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${RUNS:-3} part=${PART:-10}
(($#)) || set -- 1x1000 10x100 50x100
source scripts/local-server.sh

# Wraps the provider that Terraform starts, to record its CPU seconds and KiB.
usage=$work/usage
provider() {
	mkdir -p "$work/plugin"
	printf '#!/bin/sh\nexec /usr/bin/time -a -o %q -f "%%U %%S %%M" %q "$@"\n' "$usage" "$1" >"$work/plugin/terraform-provider-scheduler"
	chmod +x "$work/plugin/terraform-provider-scheduler"
}
sed -i "s#\"$root/bin\"#\"$work/plugin\"#" "$TF_CLI_CONFIG_FILE"

# Prints the CPU time of the server in clock ticks.
server_ticks() { awk '{print $14 + $15}' "/proc/${pids[-1]}/stat"; }
tick=$(getconf CLK_TCK)
TIMEFORMAT='%R %U %S'

make --no-print-directory -s build
terraform version | sed -n 1p
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg), cores: $(nproc)"
printf '%-10s %-8s %-8s %8s %12s %15s %13s %13s\n' placements provider step 'wall s' 'core CPU s' 'provider CPU s' 'server CPU s' 'provider MiB'
providers=("new=$root/bin/terraform-provider-scheduler")
[[ -z ${BASE:-} ]] || providers=("base=$BASE" "${providers[@]}")
for shape; do for which in "${providers[@]}"; do
	provider "${which#*=}"
	blocks=${shape%x*} count=${shape#*x}
	rm -rf "$work/data" "$work/config"
	mkdir "$work/config"
	start_server
	clusters() {
		echo 'resource "scheduler_cluster" "site" {'
		echo '  count  = 10'
		echo '  name   = "site-${count.index}"'
		echo '  labels = { location = count.index % 2 == 0 ? "DE" : "FR" }'
		echo '}'
	}
	# block NUMBER prints the configuration of a block of placements.
	block() {
		echo "resource \"scheduler_placement\" \"block_$1\" {"
		echo "  count              = $count"
		echo "  name               = \"p-$1-\${count.index}\""
		echo '  labels             = { app = "shop", tier = "web", team = "a" }'
		echo '  number_of_clusters = 1'
		echo '  label_constraints  = ["location is DE"]'
		echo '}'
	}
	printf 'terraform {\n  required_providers {\n    scheduler = { source = "scheduler/scheduler" }\n  }\n}\n' >"$work/config/terraform.tf"

	# Runs Terraform, and records its cost.
	measure() {
		local step=$1 wall user system before failed=
		shift
		before=$(server_ticks)
		: >"$usage"
		{ time terraform -chdir="$work/config" "$@" >"$work/terraform.log" 2>&1 || failed=1; } 2>"$work/time"
		[[ -z $failed ]] || exit 1
		read -r wall user system <"$work/time"
		awk -v shape="$shape" -v which="${which%%=*}" -v step="$step" -v wall="$wall" -v cpu="$user $system" -v ticks="$(($(server_ticks) - before))" -v tick="$tick" \
			'{provider += $1 + $2; if ($3 > memory) memory = $3}
			END {split(cpu, c); printf "%-10s %-8s %-8s %8.2f %12.2f %15.2f %13.2f %13d\n", shape, which, step, wall, c[1] + c[2] - provider, provider, ticks / tick, memory / 1024}' "$usage"
	}
	# Prints the resources of a state, without the surrounding brackets.
	resources() { sed -n '/^  "resources": \[$/,/^  \],$/p' "$1" | sed '1d;$d'; }

	clusters >"$work/config/main.tf"
	terraform -chdir="$work/config" apply -auto-approve >"$work/terraform.log" 2>&1
	for ((first = 0; first < blocks; first += part)); do
		mv "$work/config/terraform.tfstate" "$work/all.tfstate"
		last=$((first + part < blocks ? first + part : blocks))
		for ((i = first; i < last; i++)); do block "$i"; done >"$work/config/main.tf"
		shape="$((last - first))x$count" measure apply apply -auto-approve
		{
			sed '/^  "resources": \[$/q' "$work/all.tfstate"
			resources "$work/all.tfstate" | sed '$s/$/,/'
			resources "$work/config/terraform.tfstate"
			sed -n '/^  \],$/,$p' "$work/all.tfstate"
		} >"$work/joined.tfstate"
		mv "$work/joined.tfstate" "$work/config/terraform.tfstate"
	done
	{
		clusters
		for ((i = 0; i < blocks; i++)); do block "$i"; done
	} >"$work/config/main.tf"
	for ((run = 0; run < runs; run++)); do
		measure plan plan -detailed-exitcode
	done
	kill "${pids[-1]}"
	wait "${pids[-1]}"
	unset 'pids[-1]'
done; done
