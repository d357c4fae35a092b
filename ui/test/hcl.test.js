import assert from 'node:assert/strict';
import test from 'node:test';
import { toHCL } from '../src/hcl.js';

test('an object is written as terraform fmt would leave it', () => {
  assert.equal(toHCL({
    kind: 'placement', metadata: { name: 'web', namespace: 'shop', labels: { team: 'a', 'app.kubernetes.io/name': 'web' }, uid: 'x' },
    spec: { number_of_clusters: 2, label_constraints: ['location in (DE, FR)'], metrics: { stickiness: 0.1 }, tolerations: [{ key: 'k', operator: 'Exists' }], migration: true },
    status: { clusters: ['berlin'] },
  }), `resource "scheduler_placement" "web" {
  name      = "web"
  namespace = "shop"
  labels = {
    team                     = "a"
    "app.kubernetes.io/name" = "web"
  }

  number_of_clusters = 2
  label_constraints  = ["location in (DE, FR)"]
  metrics = {
    stickiness = 0.1
  }
  tolerations = [
    {
      key      = "k"
      operator = "Exists"
    },
  ]
  migration = true
}
`);
});

test('text cannot leave its quotes', () => {
  const hcl = toHCL({ kind: 'cluster', metadata: { name: 'x' }, spec: { description: '"} ${file("/etc/passwd")} %{for} \\ \n', claims: { 'a"b': '', for: 'x' } } });
  assert.ok(hcl.includes('description = "\\"} $${file(\\"/etc/passwd\\")} %%{for} \\\\ \\n"'), hcl);
  assert.ok(hcl.includes('"a\\"b"') && hcl.includes('"for"'), hcl);
});
