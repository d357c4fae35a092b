#!/usr/bin/env bash
# Shows the whole path on this machine, and leaves nothing behind: a server, metrics, `terraform apply` of
# examples/quickstart, a metric that changes, a placement that follows it and a plan that reports it.
#
# With KEEP=1 it destroys nothing and leaves everything running; the last line has the address of the page and a token.
#
# It needs what `make build` builds, Go and Terraform. A Prometheus on the PATH is used; without one the metrics are static.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/local-server.sh

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

terraform_quietly() { terraform -chdir="$work/quickstart" "$@" >"$work/terraform.log" 2>&1; }
output() { terraform -chdir="$work/quickstart" output "$1"; }
terraform_console() { terraform -chdir="$work/quickstart" console <<<"$1" 2>/dev/null; }

cp -R examples/quickstart "$work/quickstart"

say 'Starting the scheduling server'
go build -o "$work/exporter" ./examples/demo/exporter
start_server
echo "The server is at $SCHEDULER_ENDPOINT, its data in an embedded store."

sites=$(terraform_console 'jsonencode(var.sites)' | sed 's/^"//; s/"$//; s/\\"/"/g')
if command -v prometheus >/dev/null; then
	live=1
	say 'Starting an exporter with the figures of four sites, and a Prometheus that scrapes it'
	background exporter 's/^exporter ready at //p' "$work/exporter" -sites "$sites"
	exporter=$REPLY
	cat >"$work/prometheus.yml" <<YML
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: sites
    static_configs: [{targets: ["${exporter#http://}"]}]
YML
	background prometheus 's/.*msg="Listening on".* address=\([0-9.:]*\).*/http:\/\/\1/p' \
		prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:0
	export TF_VAR_prometheus_url=$REPLY
	"$work/exporter" -await "$TF_VAR_prometheus_url"
	echo "Prometheus is at $TF_VAR_prometheus_url."
else
	live=
	say 'There is no Prometheus on the PATH: the metrics are static'
	echo 'scripts/build-prometheus.sh builds one; then the demo reads live metrics.'
fi

say 'terraform apply: four clusters, their metrics, two placements'
terraform_quietly apply -auto-approve
grep -E '^Apply complete' "$work/terraform.log"

say 'The decisions, with the score of each cluster'
output decisions
echo
echo 'Why:'
output why
echo
echo 'What keeps clusters out:'
terraform_console '{ for name, p in data.scheduler_placement_explanation.all : name => { for c in p.candidates : c.cluster => c.reason if c.reason != null } }'

say 'terraform plan: nothing to do, although metrics are live'
terraform_quietly plan -detailed-exitcode
grep -E '^No changes' "$work/terraform.log"

say 'Electricity in Berlin becomes expensive'
if [[ $live ]]; then
	"$work/exporter" -set "$exporter" electricity_price berlin 0.95
else
	# Only the table of the provider is written; the placement is not even looked at.
	sed 's/\("berlin":{[^}]*"electricity":\)[0-9.]*/\10.95/; s/.*/{"sites":&}/' <<<"$sites" >"$work/quickstart/dear.auto.tfvars.json"
	terraform_quietly apply -auto-approve -target='scheduler_metrics_provider.site["berlin"]'
fi

say 'The server moves the placement; terraform plan reports it'
for _ in {1..40}; do
	code=0
	terraform_quietly plan -refresh-only -detailed-exitcode || code=$? # 2 = something has changed
	((code != 1)) || exit 1
	! grep -qF 'scheduler_placement.web has changed' "$work/terraform.log" || break
	sleep 0.5
done
grep -qF 'scheduler_placement.web has changed' "$work/terraform.log" || { echo 'the placement did not move' >&2; exit 1; }
sed -n '/^Terraform detected/,/^This is a refresh-only plan/{/^This is/d;/^$/d;p}' "$work/terraform.log"

say 'terraform apply: what depends on the decision follows'
terraform_quietly apply -auto-approve
grep -E '^(terraform_data|Apply complete)' "$work/terraform.log"
output decisions
echo
output why

if [[ ${KEEP:-} ]]; then
	say 'Everything stays, and the server keeps running'
	SCHEDULER_TOKEN=$(bin/scheduler-server token create --role admin --description 'make demo')
	trap - EXIT INT TERM
	echo "Its configuration is in $work/quickstart. To change something:"
	echo "  export SCHEDULER_ENDPOINT=$SCHEDULER_ENDPOINT SCHEDULER_TOKEN=$SCHEDULER_TOKEN TF_CLI_CONFIG_FILE=$work/terraform.rc"
	echo "To end it: kill ${pids[*]}; sleep 1; rm -rf $work"
	echo "The page: $SCHEDULER_ENDPOINT/ui token: $SCHEDULER_TOKEN"
	exit
fi

say 'terraform destroy'
terraform_quietly destroy -auto-approve
grep -E '^Destroy complete' "$work/terraform.log"
