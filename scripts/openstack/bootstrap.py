#!/usr/bin/python3
"""Makes the users of the services, the catalog, and the domain of Magnum's trustees."""
import os
import openstack
e = os.environ
c = openstack.connect(load_yaml_config=False)
i = c.identity
role = {r.name: r for r in i.roles()}
for r in ('service', 'reader', 'member'):
    if r not in role:
        role[r] = i.create_role(name=r)
sp = i.find_project('service') or i.create_project(name='service', domain_id='default')
region = e['REGION']
cat = {
    'placement': ('placement', 'placement', e['P_PLACEMENT'], ''),
    'glance': ('glance', 'image', e['P_GLANCE'], ''),
    'nova': ('nova', 'compute', e['P_NOVA'], '/v2.1'),
    'cinder': ('cinderv3', 'volumev3', e['P_CINDER'], '/v3/%(project_id)s'),
    'neutron': ('neutron', 'network', e['P_NEUTRON'], ''),
    'magnum': ('magnum', 'container-infra', e['P_MAGNUM'], '/v1'),
}
have = {s.type: s for s in i.services()}
for s in e['SERVICES'].split():
    if s == 'keystone':
        continue
    u = i.find_user(s) or i.create_user(name=s, password=e['PASS'], domain_id='default', default_project_id=sp.id)
    for r in ('admin', 'service'):
        i.assign_project_role_to_user(sp, u, role[r])
    name, typ, port, path = cat[s]
    if typ not in have:
        svc = i.create_service(name=name, type=typ, description='OpenStack ' + s)
        for iface in ('public', 'internal', 'admin'):
            i.create_endpoint(service_id=svc.id, interface=iface, region_id=region, url='http://127.0.0.1:%s%s' % (port, path))
if 'magnum' in e['SERVICES']:
    d = i.find_domain('magnum') or i.create_domain(name='magnum', description='trustees of clusters')
    u = i.find_user('magnum_domain_admin', domain_id=d.id) or i.create_user(name='magnum_domain_admin', password=e['PASS'], domain_id=d.id)
    i.assign_domain_role_to_user(d, u, role['admin'])
