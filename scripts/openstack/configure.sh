#!/usr/bin/env bash
# Writes the configuration of every service to $OSK/etc, replacing existing files.
set -euo pipefail
. "$(dirname "$0")/env.sh"
E=$OSK/etc; S=$OSK/deb/usr/share
mkdir -p "$E"/{placement,rabbit} "$OSK"/{log,run,lock,state,fernet,credential,mysql,rabbit,images,cinder,nova,neutron,magnum}
chmod 700 "$OSK"/{fernet,credential}
rm -rf "$OSK/ext"; cp -r "$HERE/ext" "$OSK/ext"
db() { echo "mysql+pymysql://osk:$PASS@127.0.0.1:$P_MYSQL/$1?charset=utf8"; }
RABBIT="rabbit://guest:guest@127.0.0.1:$P_RABBIT/"
KS=http://127.0.0.1:$P_KEYSTONE
creds() { cat <<X
auth_type = password
auth_url = $KS/v3
username = $1
password = $PASS
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = $REGION
X
}
authtoken() { cat <<X
[keystone_authtoken]
www_authenticate_uri = $KS/v3
memcached_servers = 127.0.0.1:$P_MEMCACHED
service_token_roles = admin,service
service_token_roles_required = true
$(creds $1)
[service_user]
send_service_user_token = true
$(creds $1)
[oslo_policy]
policy_dirs = /nonexistent
[oslo_concurrency]
lock_path = $OSK/lock
[oslo_messaging_notifications]
driver = noop
X
}
common() { cat <<X
transport_url = $RABBIT
my_ip = 127.0.0.1
debug = false
X
}
database() { cat <<X
[database]
connection = $(db $1)
max_pool_size = 5
max_overflow = 10
X
}
cat > $E/my.cnf <<X
[mysqld]
user = root
datadir = $OSK/mysql
socket = $OSK/run/mysql.sock
pid-file = $OSK/mysql/mariadbd.pid
port = $P_MYSQL
bind-address = 127.0.0.1
max_connections = 500
character-set-server = utf8
collation-server = utf8_general_ci
innodb_flush_log_at_trx_commit = 0
innodb_doublewrite = 0
innodb_buffer_pool_size = 128M
performance_schema = off
skip-log-bin
skip-name-resolve
X
cat > $E/rabbit/rabbitmq.conf <<X
listeners.tcp.1 = 127.0.0.1:$P_RABBIT
loopback_users.guest = true
log.console = false
log.file.level = warning
vm_memory_high_watermark.absolute = 512MB
X
cat > $E/keystone.conf <<X
[DEFAULT]
debug = false
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = 127.0.0.1:$P_MEMCACHED
$(database keystone)
[identity]
password_hash_rounds = 4
max_password_length = 54
[token]
provider = fernet
expiration = 14400
[fernet_tokens]
key_repository = $OSK/fernet
[credential]
key_repository = $OSK/credential
[oslo_policy]
policy_dirs = /nonexistent
X
cat > $E/placement/placement.conf <<X
[DEFAULT]
[api]
auth_strategy = keystone
[placement_database]
connection = $(db placement)
$(authtoken placement | sed -n '/keystone_authtoken/,/^\[service_user/p' | sed '/service_user/d')
[oslo_policy]
policy_dirs = /nonexistent
X
cat > $E/glance.conf <<X
[DEFAULT]
$(common)
bind_host = 127.0.0.1
bind_port = $P_GLANCE
workers = 1
enabled_backends = file:file
use_keystone_limits = false
show_multiple_locations = false
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $OSK/images
[os_glance_staging_store]
filesystem_store_datadir = $OSK/state/glance_staging
[os_glance_tasks_store]
filesystem_store_datadir = $OSK/state/glance_tasks
[paste_deploy]
flavor = keystone
config_file = $S/glance-common/glance-api-paste.ini
$(database glance)
$(authtoken glance)
X
cat > $E/nova.conf <<X
[DEFAULT]
$(common)
state_path = $OSK/nova
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = $P_NOVA
osapi_compute_workers = 1
compute_driver = osk_nova.Driver
reserved_host_memory_mb = 512
reserved_host_disk_mb = 0
initial_cpu_allocation_ratio = 4.0
initial_ram_allocation_ratio = 1.0
initial_disk_allocation_ratio = 1.0
update_resources_interval = 15
report_interval = 5
service_down_time = 20
sync_power_state_interval = -1
resize_confirm_window = 0
[wsgi]
api_paste_config = $S/nova-common/api-paste.ini
[api]
auth_strategy = keystone
[api_database]
connection = $(db nova_api)
$(database nova)
[placement]
$(creds placement)
[neutron]
$(creds neutron)
service_metadata_proxy = false
[cinder]
$(creds cinder)
os_region_name = $REGION
catalog_info = volumev3::publicURL
[glance]
api_servers = http://127.0.0.1:$P_GLANCE
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 5
[filter_scheduler]
enabled_filters = AvailabilityZoneFilter,ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,AggregateInstanceExtraSpecsFilter
[vnc]
enabled = false
$(authtoken nova)
X
backs=$(for b in $BACKENDS; do echo -n "${b%%=*},"; done)
cat > $E/cinder.conf <<X
[DEFAULT]
$(common)
state_path = $OSK/cinder
host = vol-1
auth_strategy = keystone
osapi_volume_listen = 127.0.0.1
osapi_volume_listen_port = $P_CINDER
osapi_volume_workers = 1
api_paste_config = $S/cinder-common/api-paste.ini
resource_query_filters_file = $OSK/deb/etc/cinder/resource_filters.json
rootwrap_config = $OSK/deb/etc/cinder/rootwrap.conf
glance_api_servers = http://127.0.0.1:$P_GLANCE
enabled_backends = ${backs%,}
default_volume_type = ssd
backend_stats_polling_interval = 10
$(for b in $BACKENDS; do n=${b%%=*}; printf '[%s]\nvolume_driver = osk_cinder.Driver\nvolume_backend_name = %s\ntarget_protocol = iscsi\n' $n $n; done)
$(database cinder)
$(authtoken cinder)
X
cat > $E/neutron.conf <<X
[DEFAULT]
$(common)
state_path = $OSK/neutron
bind_host = 127.0.0.1
bind_port = $P_NEUTRON
api_workers = 1
rpc_workers = 1
rpc_state_report_workers = 0
core_plugin = ml2
service_plugins = router
auth_strategy = keystone
api_paste_config = $S/neutron-common/api-paste.ini
dhcp_agent_notification = false
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
l3_ha = false
[ml2]
type_drivers = flat,vlan,vxlan,local
tenant_network_types = vxlan
mechanism_drivers = osk
extension_drivers = port_security
[ml2_type_flat]
flat_networks = public
[ml2_type_vxlan]
vni_ranges = 1:1000
$(database neutron)
[nova]
$(creds nova)
[placement]
$(creds placement)
$(authtoken neutron | sed 's/^\[service_user\]/[service_user_unused]/')
X
cat > $E/magnum.conf <<X
[DEFAULT]
$(common)
state_path = $OSK/magnum
[api]
host = 127.0.0.1
port = $P_MAGNUM
workers = 1
api_paste_config = $S/magnum-common/api-paste.ini
[conductor]
workers = 1
[certificates]
cert_manager_type = x509keypair
[trust]
trustee_domain_name = magnum
trustee_domain_admin_name = magnum_domain_admin
trustee_domain_admin_password = $PASS
cluster_user_trust = true
[cluster_template]
kubernetes_allowed_network_drivers = all
[keystone_auth]
$(creds magnum)
[cinder]
default_docker_volume_type = ssd
default_etcd_volume_type = ssd
default_boot_volume_type = ssd
$(for c in cinder glance heat neutron nova magnum barbican octavia; do printf '[%s_client]\nregion_name = %s\nendpoint_type = publicURL\n' $c $REGION; done)
$(database magnum)
$(authtoken magnum)
auth_version = v3
X
