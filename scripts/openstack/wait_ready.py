#!/usr/bin/python3
"""Waits until all compute hosts are up and all storage backends have reported."""
import sys, time
import openstack
services, ncomp, nback = sys.argv[1].split(), int(sys.argv[2]), int(sys.argv[3])
c = openstack.connect(load_yaml_config=False)
end = time.time() + 240
def wait(what, f):
    last = None
    while time.time() < end:
        try:
            last = f()
            if last is True:
                return
        except Exception as x:
            last = x
        time.sleep(1)
    sys.exit('not ready: %s: %r' % (what, last))
if 'nova' in services:
    wait('hypervisors', lambda: (lambda n: n == ncomp or n)(len([h for h in c.compute.hypervisors(details=True) if h.state == 'up'])))
if 'cinder' in services:
    def pools():
        names = {p.name.split('#')[0] for p in c.block_storage.backend_pools()}
        return len(names) == nback or names
    wait('pools', pools)
