# Sourced by the other scripts in this directory: the directory, ports and size of the OpenStack for the integration
# tests. Every setting can be overridden by an environment variable.
HERE=${HERE:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
OSK=${OSK:-${SCHEDULER_TESTBED:-$HOME/.cache/scheduler-testbed}/openstack}
# The packages belong to Debian's Python; another one earlier in the PATH would hide them.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

P_KEYSTONE=${P_KEYSTONE:-5000} P_NOVA=${P_NOVA:-8774} P_PLACEMENT=${P_PLACEMENT:-8778} P_CINDER=${P_CINDER:-8776}
P_GLANCE=${P_GLANCE:-9292} P_NEUTRON=${P_NEUTRON:-9696} P_MAGNUM=${P_MAGNUM:-9511}
P_RABBIT=${P_RABBIT:-5672} P_MYSQL=${P_MYSQL:-13306} P_MEMCACHED=${P_MEMCACHED:-11211}
PASS=${PASS:-osk} REGION=${REGION:-RegionOne}
SERVICES=${SERVICES:-"keystone placement glance nova cinder neutron magnum"}

# Compute hosts: name:vcpus:memory_mb:disk_gb. The last is in no aggregate.
COMPUTES=${COMPUTES:-"cmp-a1:64:262144:4000 cmp-a2:64:262144:4000 cmp-b1:32:131072:2000 cmp-b2:96:524288:8000 cmp-c1:16:65536:1000"}
# Storage backends: section="pool:total_gb:thin,.."
BACKENDS=${BACKENDS:-"ssd=ssd-pool1:2000:1,ssd-pool2:4000:1 hdd=hdd-pool:20000:0"}

export OS_AUTH_URL=http://127.0.0.1:$P_KEYSTONE/v3 OS_USERNAME=admin OS_PASSWORD=$PASS OS_PROJECT_NAME=admin
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default OS_REGION_NAME=$REGION OS_IDENTITY_API_VERSION=3
