import assert from 'node:assert/strict';
import test from 'node:test';
import { parseChanges, parseTaint, simulationOf } from '../src/what-if.js';

const read = async ({ kind, namespace = '', name }) => ({ kind, metadata: { name, namespace }, spec: kind === 'cluster' ? { taints: [{ key: 'old', effect: 'NoSelect' }] } : { number_of_clusters: 1 }, status: { value: 1, conditions: [{ type: 'Available', status: 'False' }] } });

test('changes in the address become one simulation', async () => {
  const changes = parseChanges({ without: 'eu-1,eu-2', drain: 'eu-3', taint: 'eu-3=maintenance=disks:NoSelectIfNew,eu-4=x/y:NoSelect', metric: 'berlin/load=0.95,price=-2', change: 'placement/shop/web', spec: '{"number_of_clusters":3}' });
  const { objects, delete: gone } = await simulationOf(changes, read);
  assert.deepEqual(gone, [{ kind: 'cluster', name: 'eu-1' }, { kind: 'cluster', name: 'eu-2' }]);
  const byName = Object.fromEntries(objects.map((o) => [o.metadata.name, o]));
  assert.equal(objects.length, 5);
  assert.deepEqual(byName['eu-3'].spec, { paused: true, taints: [{ key: 'old', effect: 'NoSelect' }, { key: 'schedulerctl/drain', effect: 'NoSelect' }, { key: 'maintenance', value: 'disks', effect: 'NoSelectIfNew' }] });
  assert.deepEqual(byName['eu-4'].spec.taints[1], { key: 'x/y', effect: 'NoSelect' });
  assert.deepEqual(byName.load.status, { value: 0.95 }, 'the failure of the last reading does not hold for the new value');
  assert.equal(byName.load.metadata.namespace, 'berlin');
  assert.equal(byName.price.status.value, -2);
  assert.deepEqual(byName.web.spec, { number_of_clusters: 3 });
});

test('taints are read as schedulerctl writes them', () => {
  assert.deepEqual(parseTaint('a=b:NoSelect'), { key: 'a', value: 'b', effect: 'NoSelect' });
  assert.deepEqual(parseTaint('a/b:NoSelect'), { key: 'a/b', value: '', effect: 'NoSelect' });
  assert.deepEqual(parseTaint('a=x:y:NoSelect'), { key: 'a', value: 'x:y', effect: 'NoSelect' });
});

test('what the server showed is not changed', async () => {
  const shown = await read({ kind: 'cluster', name: 'eu-1' });
  await simulationOf(parseChanges({ drain: 'eu-1' }), async () => shown);
  assert.equal(shown.spec.taints.length, 1);
  assert.equal(shown.spec.paused, undefined);
});
