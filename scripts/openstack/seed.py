#!/usr/bin/python3
"""Makes what the tests look at: projects with tags, flavors, aggregates, volume types, networks, machines, volumes, Magnum clusters.
What is there already stays, so it may run again."""
import os, sys, time, subprocess
import openstack
services = os.environ.get('SERVICES', 'keystone placement glance nova cinder neutron magnum').split()
c = openstack.connect(load_yaml_config=False)
i = c.identity
def step(s): print('%.1fs %s' % (time.time() - T0, s), flush=True)
T0 = time.time()
# --- keystone
role = {r.name: r for r in i.roles()}
me = i.find_user('admin')
proj = {}
for name, desc, tags in (('team-red', 'Red team', ['team:red', 'ocm', 'region:eu']), ('team-blue', 'Blue team', ['team:blue', 'ocm']),
                         ('team-empty', 'No resources', [])):
    p = i.find_project(name) or i.create_project(name=name, description=desc, domain_id='default', tags=tags)
    proj[name] = p
    i.assign_project_role_to_user(p, me, role['admin'])
    u = i.find_user(name + '-user') or i.create_user(name=name + '-user', password=os.environ['OS_PASSWORD'], domain_id='default', default_project_id=p.id)
    i.assign_project_role_to_user(p, u, role['member'])
off = i.find_project('team-old') or i.create_project(name='team-old', description='disabled', domain_id='default', is_enabled=False, tags=['archived'])
step('projects')
def as_project(name):
    e = os.environ
    return openstack.connect(load_yaml_config=False, load_envvars=False, region_name=e['OS_REGION_NAME'], auth=dict(
        auth_url=e['OS_AUTH_URL'], username='admin', password=e['OS_PASSWORD'], project_name=name,
        user_domain_name='Default', project_domain_name='Default'))
red, blue = as_project('team-red'), as_project('team-blue')
# --- glance
if 'glance' in services:
    for n, distro in (('tiny', None), ('ubuntu-k8s', 'ubuntu')):
        if not c.image.find_image(n):
            kw = dict(name=n, disk_format='raw', container_format='bare', visibility='public', data=b'\0' * 65536)
            if distro:
                kw['os_distro'] = distro
            c.image.create_image(allow_duplicates=True, **kw)
    step('images')
# --- neutron
nets = {}
if 'neutron' in services:
    n = c.network
    pub = n.find_network('public') or n.create_network(name='public', is_router_external=True, is_shared=False,
            provider_network_type='flat', provider_physical_network='public')
    if not n.find_subnet('public-v4'):
        n.create_subnet(name='public-v4', network_id=pub.id, ip_version=4, cidr='203.0.113.0/24', enable_dhcp=False,
                        gateway_ip='203.0.113.1', allocation_pools=[{'start': '203.0.113.10', 'end': '203.0.113.250'}])
    for t, conn, cidr in (('red', red, '10.10.0.0/24'), ('blue', blue, '10.20.0.0/22')):
        m = conn.network
        nets[t] = m.find_network(t + '-net') or m.create_network(name=t + '-net')
        s = m.find_subnet(t + '-sub') or m.create_subnet(name=t + '-sub', network_id=nets[t].id, ip_version=4, cidr=cidr)
        if not m.find_router(t + '-router'):
            r = m.create_router(name=t + '-router', external_gateway_info={'network_id': pub.id})
            m.add_interface_to_router(r, subnet_id=s.id)
        pid = proj['team-' + t].id
        while len(list(m.ips(project_id=pid))) < 2:
            m.create_ip(floating_network_id=pub.id)
    n.update_quota(proj['team-blue'].id, floating_ips=7, networks=4)
    step('networks, routers, floating ips')
# --- nova
if 'nova' in services:
    cm = c.compute
    for name, v, r, d, pub_, specs in (('m1.small', 1, 2048, 20, True, {}), ('m1.large', 4, 8192, 80, True, {}),
              ('k8s.node', 8, 32768, 100, True, {'hw:cpu_policy': 'shared'}), ('gpu.a100', 16, 65536, 200, True, {'resources:VGPU': '1', 'trait:CUSTOM_GPU_A100': 'required'}),
              ('red.private', 2, 4096, 10, False, {})):
        f = cm.find_flavor(name)
        if not f:
            f = cm.create_flavor(name=name, vcpus=v, ram=r, disk=d, is_public=pub_, ephemeral=0, swap=0)
            if specs: cm.create_flavor_extra_specs(f, specs)
            if not pub_: cm.flavor_add_tenant_access(f, proj['team-red'].id)
    have = {a.name: a for a in cm.aggregates()}
    for name, az, hosts, meta in (('az-a', 'az-a', ['cmp-a1', 'cmp-a2'], {'power': '12000W', 'sku': 'gen2'}),
                                  ('az-b', 'az-b', ['cmp-b1', 'cmp-b2'], {'sku': 'gen3'}),
                                  ('big-memory', None, ['cmp-b2'], {'memory': 'big'})):
        if name not in have:
            a = cm.create_aggregate(name=name, availability_zone=az)
            for h in hosts: cm.add_host_to_aggregate(a, h)
            cm.set_aggregate_metadata(a, meta)
    for t, q in (('red', {'cores': 40, 'ram': 102400, 'instances': 12}), ('blue', {'cores': 100, 'ram': 262144, 'instances': -1})):
        r = cm.put('/os-quota-sets/%s' % proj['team-' + t].id, json={'quota_set': q})
        assert r.status_code == 200, r.text
    step('flavors, aggregates, quota')
    img = c.image.find_image('tiny')
    for conn, t, n_, fl, az in ((red, 'red', 3, 'm1.large', 'az-a'), (blue, 'blue', 2, 'k8s.node', 'az-b'), (blue, 'blue', 1, 'm1.small', 'az-a')):
        for k in range(n_):
            name = '%s-%s-%s-%d' % (t, az, fl.replace('.', ''), k)
            if not conn.compute.find_server(name):
                conn.compute.create_server(name=name, flavor_id=cm.find_flavor(fl).id, image_id=img.id, availability_zone=az,
                    networks=[{'uuid': nets[t].id}] if t in nets else 'none', metadata={'owner': t})
    if not red.compute.find_server('red-too-big'):  # no host has the GPU: ends in ERROR
        red.compute.create_server(name='red-too-big', flavor_id=cm.find_flavor('gpu.a100').id, image_id=img.id, networks='none')
    for k in range(180):
        st = {s.name: s.status for s in cm.servers(all_projects=True)}
        if all(v != 'BUILD' for v in st.values()): break
        time.sleep(1)
    step('servers: %s' % st)
    if nets:
        srv = red.compute.find_server('red-az-a-m1large-0')
        port = next(iter(red.network.ports(device_id=srv.id)))
        free = [f for f in red.network.ips(project_id=proj['team-red'].id)]
        if not any(f.port_id for f in free):
            red.network.update_ip(free[0], port_id=port.id)
        step('floating ip bound')
# --- cinder
if 'cinder' in services:
    b = c.block_storage
    have = {t['name'] for t in b.get('/types?is_public=None').json()['volume_types']}
    for name, specs, public in (('ssd', {'volume_backend_name': 'ssd', 'multiattach': '<is> True'}, True), ('hdd', {'volume_backend_name': 'hdd'}, True), ('archive', {'volume_backend_name': 'tape'}, False)):
        if name not in have:
            t = b.create_type(name=name, description=name + ' volumes', is_public=public)
            b.update_type_extra_specs(t, **specs)
    for conn, name, size, typ in ((red, 'red-data', 200, 'ssd'), (red, 'red-backup', 1000, 'hdd'), (blue, 'blue-data', 500, 'ssd'), (blue, 'blue-nobackend', 1, 'archive')):
        q = conn.block_storage
        pid = conn.current_project_id
        b.put('/os-quota-sets/%s' % pid, json={'quota_set': {'gigabytes': 5000}})
        if not any(v.name == name for v in q.volumes()):
            q.create_volume(name=name, size=size, volume_type=typ)
    for k in range(60):
        st = {v.name: v.status for v in b.volumes(all_projects=True)}
        if all(v not in ('creating', 'downloading') for v in st.values()): break
        time.sleep(1)
    step('volumes: %s' % st)
# --- magnum
if 'magnum' in services:
    for conn, t in ((red, 'red'), (blue, 'blue')):
        ep = conn.session.get_endpoint(service_type='container-infra', region_name=os.environ['OS_REGION_NAME'])
        call = lambda m, p, **kw: conn.session.request(ep + p, m, headers={'OpenStack-API-Version': 'container-infra latest', 'Accept': 'application/json'}, raise_exc=False, **kw)
        if not conn.compute.find_keypair(t + '-key'):
            conn.compute.create_keypair(name=t + '-key')
        tpl = 'k8s-' + t
        got = {x['name']: x for x in call('GET', '/clustertemplates').json()['clustertemplates']}
        if tpl not in got:
            r = call('POST', '/clustertemplates', json=dict(name=tpl, coe='kubernetes', image_id='ubuntu-k8s', external_network_id='public',
                keypair_id=t + '-key', flavor_id='k8s.node', master_flavor_id='m1.large', network_driver='calico', docker_volume_size=50,
                server_type='vm', labels={'kube_tag': 'v1.26.8', 'availability_zone': 'az-a'}, public=(t == 'red')))
            if r.status_code >= 300: print('template', t, r.status_code, r.text); continue
            got[tpl] = r.json()
        if not any(x['name'] == t + '-k8s' for x in call('GET', '/clusters').json()['clusters']):
            r = call('POST', '/clusters', json=dict(name=t + '-k8s', cluster_template_id=got[tpl]['uuid'], keypair=t + '-key', master_count=1, node_count=3))
            print('cluster', t, r.status_code, r.text[:300])
        for k in range(60):
            st = {x['name']: x['status'] for x in call('GET', '/clusters').json()['clusters']}
            if st and all(not v.endswith('IN_PROGRESS') for v in st.values()): break
            time.sleep(1)
        step('clusters of %s: %s' % (t, st))
