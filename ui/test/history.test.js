import assert from 'node:assert/strict';
import test from 'node:test';
import { actorOf, causeOf, causes, clustersIn, marginOf, wayOf } from '../src/cause.js';
import { filterOf } from '../src/moves.js';
import { parseRoute, pastLink } from '../src/route.js';
import { instantOf, localOf } from '../src/time.js';
import { concerns, entriesOf, entryID, linkOf, merge } from '../src/timeline.js';

const web = { kind: 'placement', namespace: 'shop', name: 'web' };
const entry = (revision, more = {}) => ({ revision, object: web, before: { clusters: ['a'] }, after: { clusters: ['b'] }, moved: [{ from: 'a', to: 'b' }], cause: { type: 'spec', object: web }, ...more });

test('a cause is a sentence', () => {
  const metric = { kind: 'metric', name: 'load' };
  for (const [cause, sentence, more] of [
    [{ type: 'spec', object: web }, 'this placement was written'],
    [{ type: 'spec', object: web }, 'this placement was created', { before: undefined }],
    [{ type: 'spec', object: web }, 'this placement was deleted', { after: undefined }],
    [{ type: 'spec', object: web, field: 'spec.number_of_clusters', old: '1', new: '2' }, 'spec.number_of_clusters of this placement changed: 1 → 2'],
    [{ type: 'metric', object: metric, field: 'status.value', old: '30', new: '99' }, 'the value of metric load changed: 30 → 99'],
    [{ type: 'metric', object: metric, field: 'spec.max', new: '5' }, 'spec.max of metric load changed: none → 5'],
    [{ type: 'metric' }, 'a metric changed'],
    [{ type: 'taint', object: { kind: 'cluster', name: 'eu-1' }, field: 'spec.taints', new: 'a:NoSelect' }, 'the taints of cluster eu-1 changed: none → a:NoSelect'],
    [{ type: 'cluster_offline', object: { kind: 'cluster', name: 'eu-1' }, field: 'status.state', old: 'online', new: 'offline' }, 'cluster eu-1 was no longer online'],
    [{ type: 'cluster_offline' }, 'a cluster was no longer online'],
    [{ type: 'cluster_set', object: { kind: 'cluster_set', name: 'gold' } }, 'cluster set gold was created or deleted, or is another one'],
    [{ type: 'time', object: web, field: 'spec.reschedule_after', old: '60s' }, 'the decision was older than reschedule_after (60s)'],
    [{ type: 'preemption', object: { kind: 'workload', namespace: 'a', name: 'b' } }, 'workload a/b of a higher priority took the room'],
    [{ type: 'unknown' }, 'what changed is not known'],
    [{ type: 'of a newer server' }, 'of a newer server changed'],
  ]) assert.equal(causeOf(entry(1, { cause, ...more })), sentence);
  for (const type of Object.keys(causes)) assert.match(causeOf(entry(1, { cause: { type } })), /^\w.* \w/, type);
  assert.ok(causeOf(entry(1, { cause: { type: 'spec', object: web, field: 'spec', new: 'x'.repeat(5000) } })).length < 250, 'a value of any length fits');
});

test('an entry says who, how close it was, and what moved', () => {
  assert.equal(actorOf(entry(1)), '');
  assert.equal(actorOf(entry(1, { actor: { token: 't1', request_id: 'r1' } })), 'by t1, request r1');
  assert.equal(actorOf(entry(1, { actor: { request_id: 'r1' } })), 'by somebody without a token, request r1');
  assert.equal(marginOf(entry(1)), '');
  assert.equal(marginOf(entry(1, { margin: { old_score: 0.41239, new_score: 0.5, needed: 0.05 } })), 'score 0.4124 → 0.5, 0.05 more was needed');
  assert.equal(marginOf(entry(1, { margin: { old_score: 0, new_score: 0.5, needed: 0 } })), 'score 0 → 0.5');
  assert.deepEqual(wayOf(entry(1, { moved: [{ from: 'a', to: 'b', replicas: 2 }, { from: 'a', to: 'c', replicas: 1 }, { to: 'd' }] })), { from: ['a ×3'], to: ['b ×2', 'c ×1', 'd'] });
  assert.deepEqual(wayOf({}), { from: [], to: [] });
  assert.deepEqual(clustersIn({ clusters: ['a', 'b'], replicas: { a: 0 } }), ['a ×0', 'b']);
  assert.deepEqual(clustersIn(undefined), []);
});

test('newer pages are put before what is known, without a gap and without doubles', () => {
  const known = [entry(3), entry(2)];
  assert.deepEqual(merge([entry(5), entry(4), entry(3)], known).entries.map((e) => e.revision), [5, 4, 3, 2]);
  assert.equal(merge([entry(5), entry(4), entry(3)], known).known, true);
  assert.equal(merge([entry(9), entry(8)], known).known, false, 'something may be missing in between');
  assert.equal(merge([entry(1)], []).known, false);
  // One transaction writes many decisions.
  const other = { ...web, name: 'other' };
  assert.equal(merge([entry(3, { object: other }), entry(3)], known).entries.length, 3);
  assert.notEqual(entryID(entry(3)), entryID(entry(3, { object: other })));
  assert.deepEqual(entriesOf({ items: [entry(9), entry(4)], gaps: [{ since: 5, until: 7, reason: 'upgrade' }] }).map((e) => e.revision), [9, 7, 4]);
});

test('events that a filter would hide are not waited for', () => {
  const event = { type: 'put', from: { clusters: ['a'] }, object: { kind: 'placement', metadata: { namespace: 'shop', name: 'web' }, status: { clusters: ['b'] } } };
  for (const [filter, expected] of [[{}, true], [web, true], [{ namespace: 'shop' }, true], [{ namespace: 'bank' }, false], [{ name: 'api' }, false], [{ cluster: 'a' }, true], [{ cluster: 'b' }, true], [{ cluster: 'c' }, false]]) {
    assert.equal(concerns(filter, event), expected, JSON.stringify(filter));
  }
  assert.equal(concerns({}, { ...event, from: undefined }), false, 'nothing has moved');
  assert.equal(concerns({}, { type: 'delete', object: event.object }), true);
  assert.equal(concerns({}, { type: 'delete', object: { kind: 'freeze', metadata: {} } }), false);
});

test('filters are in the address, and so is the past', () => {
  assert.deepEqual(filterOf({ object: 'shop/web', cause: 'metric' }), { namespace: 'shop', name: 'web', cause: 'metric' });
  assert.deepEqual(filterOf({ object: 'shop/' }), { namespace: 'shop' });
  assert.deepEqual(filterOf({ object: 'web' }), { name: 'web' });
  assert.deepEqual(filterOf({}), {});
  assert.deepEqual(parseRoute(pastLink(web, 1042)), { view: 'decision', parts: ['placement', 'shop', 'web'], params: { at: '1042' } });
  assert.match(linkOf(entry(7)), /at=7$/);
  assert.match(linkOf(entry(7, { after: undefined })), /at=6$/, 'what ended is shown as it was before');
  assert.match(linkOf(entry(7, { object: { kind: 'cluster', name: 'eu-1' } })), /^#\/fleet\?cluster=eu-1$/);
  assert.equal(linkOf(entry(7, { object: { kind: 'magnum_cluster', namespace: 'a', name: 'b' } })), undefined);
  assert.equal(linkOf({ gap: {} }), undefined);
});

test('times of fields are those of the reader', () => {
  assert.equal(localOf(instantOf('2026-03-01T12:30')), '2026-03-01T12:30');
  assert.equal(instantOf(''), '');
  assert.equal(localOf('yesterday'), '');
});
