#!/usr/bin/env bash
# Starts the OpenStack for the integration tests, and creates its databases the first time. Each process runs in the
# background, with its ID in $OSK/run. Processes that already run are kept.
set -euo pipefail
. "$(dirname "$0")/env.sh"
T0=$(date +%s); say() { printf '[%4ds] %s\n' $(( $(date +%s) - T0 )) "$*"; }
"$HERE/configure.sh"
E=$OSK/etc; R=$OSK/run; L=$OSK/log
export PYTHONPATH=$OSK/ext PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=
has() { [[ " $SERVICES " == *" $1 "* ]]; }
# bg NAME COMMAND... runs a command in the background, in a separate session.
bg() {
  local n=$1; shift
  if [ -e $R/$n.pid ] && kill -0 "$(cat $R/$n.pid)" 2>/dev/null; then return; fi
  setsid "$@" >>$L/$n.log 2>&1 </dev/null & echo $! > $R/$n.pid
}
# Runs the entry point module:function of a program whose file is in a package that is not installed.
py() {
  local ep=$1; shift; exec -a "${ep%%.*}" /usr/bin/python3 -c "import sys; sys.argv[0]='$1'; sys.argv[1:]=sys.argv[2:]
from ${ep%%:*} import ${ep##*:} as m; sys.exit(m())" "$@"; }
export -f py
# A process that exits at once, because another is not ready yet on a busy machine, is restarted at most ten times.
ep() { local n=$1 e=$2; shift 2; bg "$n" nice -n 5 bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do ( py "$@" ) && exit 0; sleep 2; done' _ "$e" "$n" "$@"; }
run() { ( py "$@" ); }
wait_http() { local i; for i in $(seq 1 240); do curl -s -o /dev/null --max-time 5 "$1" && return 0; sleep 0.5; done; echo "no answer: $1" >&2; return 1; }
wait_port() { local i; for i in $(seq 1 1200); do (echo > /dev/tcp/127.0.0.1/$1) 2>/dev/null && return 0; sleep 0.25; done; echo "no port $1" >&2; return 1; }

# --- infrastructure
[ -d $OSK/mysql/mysql ] || { say "mariadb init"; mariadb-install-db --user=root --datadir=$OSK/mysql --auth-root-authentication-method=socket --skip-test-db >$L/mysql-init.log 2>&1; }
bg mysql /usr/sbin/mariadbd --defaults-file=$E/my.cnf
bg memcached /usr/bin/memcached -u root -l 127.0.0.1 -p $P_MEMCACHED -U 0 -m 64
export RABBITMQ_NODENAME=osk@localhost RABBITMQ_MNESIA_BASE=$OSK/rabbit RABBITMQ_LOG_BASE=$L RABBITMQ_CONFIG_FILE=$E/rabbit/rabbitmq \
  RABBITMQ_ENABLED_PLUGINS_FILE=$E/rabbit/enabled_plugins RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}' \
  ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=${P_EPMD:-24369} RABBITMQ_DIST_PORT=${P_RABBIT_DIST:-25672} RABBITMQ_PID_FILE=$R/rabbitmq-node.pid
echo '[].' > $E/rabbit/enabled_plugins
HOME=$OSK/rabbit bg rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server
wait_port $P_MYSQL; wait_port $P_RABBIT; say "mariadb, memcached, rabbitmq up"

mysql() { /usr/bin/mariadb --defaults-file=/dev/null -S $R/mysql.sock -u root "$@"; }
FIRST=0
if [ ! -e $OSK/state/db.done ]; then
  FIRST=1
  for d in keystone placement glance nova nova_api nova_cell0 cinder neutron magnum; do
    echo "CREATE DATABASE IF NOT EXISTS $d CHARACTER SET utf8; GRANT ALL ON $d.* TO 'osk'@'localhost' IDENTIFIED BY '$PASS'; GRANT ALL ON $d.* TO 'osk'@'127.0.0.1' IDENTIFIED BY '$PASS';"
  done | mysql
  dbs() { local n=$1; shift; ( "$@" ) >$L/dbsync-$n.log 2>&1 || { echo "dbsync $n FAILED, see $L/dbsync-$n.log" >&2; tail -5 $L/dbsync-$n.log >&2; return 1; }; say "dbsync $n done"; }
  keystone_db() { keystone-manage --config-file $E/keystone.conf db_sync
    keystone-manage --config-file $E/keystone.conf fernet_setup --keystone-user root --keystone-group root
    keystone-manage --config-file $E/keystone.conf credential_setup --keystone-user root --keystone-group root
    local u=http://127.0.0.1:$P_KEYSTONE/v3
    keystone-manage --config-file $E/keystone.conf bootstrap --bootstrap-password $PASS --bootstrap-admin-url $u --bootstrap-internal-url $u --bootstrap-public-url $u --bootstrap-region-id $REGION; }
  nova_db() { run nova.cmd.manage:main nova-manage --config-file $E/nova.conf api_db sync
    run nova.cmd.manage:main nova-manage --config-file $E/nova.conf cell_v2 map_cell0 --database_connection "mysql+pymysql://osk:$PASS@127.0.0.1:$P_MYSQL/nova_cell0?charset=utf8"
    run nova.cmd.manage:main nova-manage --config-file $E/nova.conf db sync
    run nova.cmd.manage:main nova-manage --config-file $E/nova.conf cell_v2 list_cells | grep -q cell1 || run nova.cmd.manage:main nova-manage --config-file $E/nova.conf cell_v2 create_cell --name cell1; }
  chain1() { dbs keystone keystone_db; has nova && dbs nova nova_db; has magnum && dbs magnum magnum-db-manage --config-file $E/magnum.conf upgrade; true; }
  chain2() { has placement && dbs placement env OS_PLACEMENT_CONFIG_DIR=$E/placement placement-manage --config-file $E/placement/placement.conf db sync
    has glance && dbs glance run glance.cmd.manage:main glance-manage --config-file $E/glance.conf db_sync
    has cinder && dbs cinder run cinder.cmd.manage:main cinder-manage --config-file $E/cinder.conf db sync
    has neutron && dbs neutron run neutron.db.migration.cli:main neutron-db-manage --config-file $E/neutron.conf upgrade heads; true; }
  chain1 & c1=$!; chain2 & c2=$!; wait $c1; wait $c2
  touch $OSK/state/db.done
fi

# --- API by uwsgi
wsgi() { local n=$1 port=$2 file=$3; shift 3; bg $n env "$@" uwsgi --plugin python3 --http-socket 127.0.0.1:$port --wsgi-file $file --master --processes 2 --need-app --die-on-term --disable-logging --add-header "Connection: close" --socket-timeout 120 --buffer-size 65535 --lazy-apps; }
wsgi keystone $P_KEYSTONE /usr/bin/keystone-wsgi-public OS_KEYSTONE_CONFIG_FILES=$E/keystone.conf
wait_http http://127.0.0.1:$P_KEYSTONE/v3; say "keystone up"
if [ ! -e $OSK/state/bootstrap.done ]; then SERVICES="$SERVICES" P_NOVA=$P_NOVA P_PLACEMENT=$P_PLACEMENT P_CINDER=$P_CINDER P_GLANCE=$P_GLANCE P_NEUTRON=$P_NEUTRON P_MAGNUM=$P_MAGNUM P_KEYSTONE=$P_KEYSTONE PASS=$PASS REGION=$REGION /usr/bin/python3 "$HERE/bootstrap.py"; touch $OSK/state/bootstrap.done; say "service users and endpoints made"; fi
has placement && wsgi placement $P_PLACEMENT /usr/bin/placement-api OS_PLACEMENT_CONFIG_DIR=$E/placement
has glance && { mkdir -p $OSK/state/glance_{staging,tasks}; ep glance-api glance.cmd.api:main --config-file $E/glance.conf; }
has nova && { wait_http http://127.0.0.1:$P_PLACEMENT/; ep nova-conductor nova.cmd.conductor:main --config-file $E/nova.conf
  ep nova-scheduler nova.cmd.scheduler:main --config-file $E/nova.conf
  ep nova-api nova.cmd.api:main --config-file $E/nova.conf; }
has cinder && { ep cinder-api cinder.cmd.api:main --config-file $E/cinder.conf; ep cinder-scheduler cinder.cmd.scheduler:main --config-file $E/cinder.conf
  for b in $BACKENDS; do export OSK_POOLS_${b%%=*}="${b#*=}"; done
  ep cinder-volume cinder.cmd.volume:main --config-file $E/cinder.conf; }
has neutron && ep neutron-server neutron.cmd.eventlet.server:main --config-file $E/neutron.conf
has magnum && { ep magnum-api magnum.cmd.api:main --config-file $E/magnum.conf; ep magnum-conductor magnum.cmd.conductor:main --config-file $E/magnum.conf; }
if has nova; then
  for c in $COMPUTES; do IFS=: read -r n v m d <<<"$c"
    printf '[DEFAULT]\nhost = %s\n' $n > $E/compute-$n.conf
    OSK_VCPUS=$v OSK_MEM_MB=$m OSK_DISK_GB=$d ep nova-compute-$n osk_nova_compute:main --config-file $E/nova.conf --config-file $E/compute-$n.conf
  done
fi
has glance && { wait_http http://127.0.0.1:$P_GLANCE/; say "glance up"; }
has nova && { wait_http http://127.0.0.1:$P_NOVA/; say "nova-api up"; }
has cinder && { wait_http http://127.0.0.1:$P_CINDER/; say "cinder-api up"; }
has neutron && { wait_http http://127.0.0.1:$P_NEUTRON/; say "neutron up"; }
has magnum && { wait_http http://127.0.0.1:$P_MAGNUM/; say "magnum up"; }
say "processes started; waiting for compute hosts and pools"
/usr/bin/python3 "$HERE/wait_ready.py" "$SERVICES" "$(wc -w <<<"$COMPUTES")" "$(wc -w <<<"${BACKENDS}")"
say "READY"
