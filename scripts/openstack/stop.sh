#!/usr/bin/env bash
# Stops what start.sh started. Every process has its own session, by which its children are found, too.
# "stop.sh wipe" also removes the databases and the configuration.
. "$(dirname "$0")/env.sh"
cd $OSK/run 2>/dev/null || exit 0
pids() { local n s; for n in "$@"; do s=$(cat $n.pid 2>/dev/null) || continue; ps -eo pid=,sid= | awk -v s=$s '$2==s{print $1}'; done; }
end() { # names: TERM, wait 20 s, KILL
  local p i; p=$(pids "$@"); [ -n "$p" ] && kill -TERM $p 2>/dev/null
  for i in $(seq 1 40); do [ -z "$(pids "$@")" ] && break; sleep 0.5; done
  p=$(pids "$@"); [ -n "$p" ] && kill -KILL $p 2>/dev/null; return 0; }
end $(ls *.pid 2>/dev/null | sed 's/\.pid$//' | grep -vE '^(mysql|memcached|rabbitmq|rabbitmq-node)$')
end rabbitmq memcached mysql
ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=${P_EPMD:-24369} epmd -kill >/dev/null 2>&1
rm -f *.pid
[ "${1:-}" = wipe ] && rm -rf $OSK/{mysql,rabbit,state,etc,log,run,fernet,credential,images,cinder,nova,neutron,magnum,lock,ext}
exit 0
