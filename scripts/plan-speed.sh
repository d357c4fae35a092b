#!/usr/bin/env bash
# Measures `terraform plan` over many placements against a server on this machine: wall and CPU seconds, the
# provider's included, and beside them the server's.
#
#   scripts/plan-speed.sh [BLOCKSxCOUNT ...]    default 1x1000 10x100 50x100; RUNS plans each (default 3)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${RUNS:-3}
(($#)) || set -- 1x1000 10x100 50x100
source scripts/local-server.sh

# Clock ticks that the server has used.
server_ticks() { awk '{print $14 + $15}' "/proc/${pids[-1]}/stat"; }
tick=$(getconf CLK_TCK)
TIMEFORMAT='%R %U %S'

make --no-print-directory -s build
terraform version | sed -n 1p
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg), cores: $(nproc)"
printf '%-10s %-8s %9s %9s %13s\n' placements step 'wall s' 'CPU s' 'server CPU s'
for shape; do
	blocks=${shape%x*} count=${shape#*x}
	rm -rf "$work/data" "$work/config"
	mkdir "$work/config"
	start_server
	{
		printf 'terraform {\n  required_providers {\n    scheduler = { source = "scheduler/scheduler" }\n  }\n}\n'
		echo 'resource "scheduler_cluster" "site" {'
		echo '  count  = 10'
		echo '  name   = "site-${count.index}"'
		echo '  labels = { location = count.index % 2 == 0 ? "DE" : "FR" }'
		echo '}'
		for ((block = 0; block < blocks; block++)); do
			echo "resource \"scheduler_placement\" \"block_$block\" {"
			echo "  count              = $count"
			echo "  name               = \"p-$block-\${count.index}\""
			echo '  labels             = { app = "shop", tier = "web", team = "a" }'
			echo '  number_of_clusters = 1'
			echo '  label_constraints  = ["location is DE"]'
			echo '  depends_on         = [scheduler_cluster.site]'
			echo '}'
		done
	} >"$work/config/main.tf"

	# Runs Terraform, and writes down what it took.
	measure() {
		local step=$1 wall user system before failed=
		shift
		before=$(server_ticks)
		{ time terraform -chdir="$work/config" "$@" >"$work/terraform.log" 2>&1 || failed=1; } 2>"$work/time"
		[[ -z $failed ]] || exit 1
		read -r wall user system <"$work/time"
		awk -v shape="$shape" -v step="$step" -v wall="$wall" -v cpu="$user $system" -v ticks="$(($(server_ticks) - before))" -v tick="$tick" \
			'BEGIN {split(cpu, c); printf "%-10s %-8s %9.2f %9.2f %13.2f\n", shape, step, wall, c[1] + c[2], ticks / tick}'
	}
	measure apply apply -auto-approve
	for ((run = 0; run < runs; run++)); do
		measure plan plan -detailed-exitcode
	done
	kill "${pids[-1]}"
	wait "${pids[-1]}"
	unset 'pids[-1]'
done
