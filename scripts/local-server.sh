# Sourced by scripts that run the built server and provider on this machine: a working directory $work, the
# Terraform configuration for the provider in bin/, and a cleanup that leaves nothing behind.

root=$PWD
export PATH=$PATH:${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}/bin
export CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1 TF_CLI_ARGS=-no-color
# Remove the caller's settings for another server.
unset "${!SCHEDULER_@}"

work=$(mktemp -d)
pids=()
cleanup() {
	local code=$?
	trap - EXIT INT TERM
	if ((code)) && [[ -s $work/terraform.log ]]; then
		echo '--- what Terraform said last' >&2
		tail -n 40 "$work/terraform.log" >&2
	fi
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$work"
	exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# background NAME PATTERN COMMAND... starts a program, waits for the line of its output with its address, and sets
# REPLY to the address. PATTERN is a sed command that extracts it.
background() {
	local name=$1 pattern=$2
	shift 2
	: >"$work/$name.log"
	"$@" >"$work/$name.log" 2>&1 &
	pids+=($!)
	for _ in {1..300}; do
		REPLY=$(sed -n "$pattern" "$work/$name.log" | sed -n 1p)
		[[ -z $REPLY ]] || return 0
		kill -0 "${pids[-1]}" 2>/dev/null || break
		sleep 0.1
	done
	echo "$name did not start:" >&2
	cat "$work/$name.log" >&2
	exit 1
}

# Starts the server on a free port with an empty store, and tells Terraform where it is.
start_server() {
	background server 's/^scheduler-server ready at //p' bin/scheduler-server serve --data-dir "$work/data" --listen 127.0.0.1:0
	export SCHEDULER_ENDPOINT=$REPLY
}

# Use the provider in bin/ instead of one from a registry.
cat >"$work/terraform.rc" <<RC
provider_installation {
  dev_overrides {
    "$(sed -n 's/^const Address = "\(.*\)"$/\1/p' provider/provider.go)" = "$root/bin"
  }
  direct {}
}
RC
export TF_CLI_CONFIG_FILE=$work/terraform.rc
