#!/usr/bin/python3
"""What the tests ask of the running OpenStack, by its own clients: figures | boot NAME ZONE FLAVOR | delete NAME."""
import json
import math
import sys
import time

import openstack

c = openstack.connect(load_yaml_config=False)


def figures():
    """What every availability zone has, in CPUs, MiB, GiB and addresses, and which projects there are."""
    zones = {}
    for zone in c.compute.availability_zones(details=True):
        for host, services in (zone.hosts or {}).items():
            state = services.get('nova-compute')
            if state and state['active'] and state['available']:
                zones.setdefault(zone.name, []).append(host)
    providers = {p.name: p for p in c.placement.resource_providers()}

    def of(host):
        at = '/resource_providers/%s' % providers[host].id
        inventories = c.placement.get(at + '/inventories').json()['inventories']
        usages = c.placement.get(at + '/usages').json()['usages']
        return {name: (inventories[name]['total'],
                       math.floor((inventories[name]['total'] - inventories[name]['reserved']) * inventories[name]['allocation_ratio']),
                       usages[name]) for name in ('VCPU', 'MEMORY_MB')}
    storage = {}
    backends = {t.extra_specs.get('volume_backend_name'): t.name for t in c.block_storage.types()}
    for pool in c.block_storage.backend_pools():
        p = pool.capabilities
        ratio = float(p['max_over_subscription_ratio']) if p['thin_provisioning_support'] else 1
        used = p['provisioned_capacity_gb'] if p['thin_provisioning_support'] else p['total_capacity_gb'] - p['free_capacity_gb']
        sums = storage.setdefault('storage/' + backends[p['volume_backend_name']], [0, 0, 0])
        for i, n in enumerate((p['total_capacity_gb'], p['total_capacity_gb'] * ratio, used)):
            sums[i] += int(n)
    addresses = [0, 0, 0]
    external = {n.id for n in c.network.networks(is_router_external=True)}
    for a in c.network.network_ip_availabilities():
        if a.network_id in external:
            for i, n in enumerate((a.total_ips, a.total_ips, a.used_ips)):
                addresses[i] += n
    out = {}
    for name, hosts in zones.items():
        rows = [of(h) for h in hosts]
        out[name] = {'cpu': [sum(r['VCPU'][i] for r in rows) for i in range(3)],
                     'memory': [sum(r['MEMORY_MB'][i] for r in rows) for i in range(3)],
                     'floating_ips': addresses, **storage}
    projects = {p.name: sorted(p.tags) for p in c.identity.projects(is_enabled=True)}
    print(json.dumps({'zones': out, 'projects': projects, 'flavors': sorted(f.name for f in c.compute.flavors(is_public=None))}))


def boot(name, zone, flavor):
    """Starts a machine of the administrator's own project, and waits until it runs."""
    image = c.image.find_image('tiny')
    server = c.compute.find_server(name) or c.compute.create_server(
        name=name, flavor_id=c.compute.find_flavor(flavor).id, image_id=image.id, availability_zone=zone, networks='none')
    c.compute.wait_for_server(server, wait=120, interval=0.5)


def delete(name):
    """Deletes a machine, and waits until it is gone."""
    server = c.compute.find_server(name)
    if server:
        c.compute.delete_server(server)
        c.compute.wait_for_delete(server, wait=120, interval=0.5)


if __name__ == '__main__':
    start = time.monotonic()
    {'figures': figures, 'boot': boot, 'delete': delete}[sys.argv[1]](*sys.argv[2:])
    print('%s: %.1fs' % (sys.argv[1], time.monotonic() - start), file=sys.stderr)
