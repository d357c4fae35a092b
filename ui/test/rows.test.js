import assert from 'node:assert/strict';
import test from 'node:test';
import { parseChecks, signalOf } from '../src/health.js';
import { causeOf } from '../src/cause.js';
import { partsOf } from '../src/decision.js';
import { earlierMoveOf } from '../src/history.js';
import { moveOf } from '../src/moves.js';
import { summarize } from '../src/summary.js';
import { ago, duration } from '../src/time.js';

const workload = { kind: 'workload', metadata: { namespace: 'shop', name: 'api', resource_version: '9' }, spec: { replicas: 5 },
  status: { clusters: [{ name: 'eu-1', replicas: 3 }, { name: 'eu-2', replicas: 2 }], conditions: [{ type: 'Scheduled', status: 'True', message: 'fits' }], scheduled_at: '2026-03-01T12:00:00Z' } };

test('a row has what the server puts into it', () => {
  const row = summarize(workload);
  assert.deepEqual([row.clusters, row.cluster_count, row.satisfied, row.replicas, row.message], [['eu-1', 'eu-2'], 2, 'True', 5, 'fits']);
  const placement = summarize({ kind: 'placement', metadata: { namespace: 'a', name: 'b' }, spec: {}, status: { clusters: Array.from({ length: 20 }, (_, i) => `c${i}`), conditions: [{ type: 'MoveHeld', status: 'True', message: 'wait' }] } });
  assert.deepEqual([placement.clusters.length, placement.cluster_count, placement.satisfied, placement.held], [8, 20, 'Unknown', 'wait']);
});

test('a move shows only what differs', () => {
  const move = moveOf({ type: 'put', object: workload, from: { clusters: ['eu-0', 'eu-2'], replicas: { 'eu-0': 3, 'eu-2': 2 } } }, '');
  assert.deepEqual([move.from, move.to, move.at], [['eu-0 ×3'], ['eu-1 ×3'], '2026-03-01T12:00:00Z']);
  assert.equal(moveOf({ type: 'put', object: workload }, ''), undefined, 'without a decision before, nothing moved');
  assert.equal(moveOf({ type: 'delete', object: workload, from: { clusters: [] } }, ''), undefined);
});

test('a move says why, as far as the object tells', () => {
  const why = (status) => moveOf({ type: 'put', object: { kind: 'placement', metadata: {}, status }, from: { clusters: ['a'] } }, '').why;
  assert.equal(why({ clusters: ['b'], decisions: [{ cluster: 'b', score: 0.41234567 }] }), 'chose b with score 0.4123');
  assert.equal(why({ clusters: ['b'], conditions: [{ type: 'Satisfied', status: 'False', message: 'too few' }] }), 'too few');
  assert.equal(why({ clusters: [] }), '');
  assert.equal(why({ clusters: ['b'], decisions: [{ cluster: 'b', score: 0.5 }], cause: { type: 'taint', object: { kind: 'cluster', name: 'a' }, field: 'spec.taints', new: 'x:NoSelect' } }), 'the taints of cluster a changed: none → x:NoSelect; chose b with score 0.5');
  const { why: evicted } = moveOf({ type: 'put', object: { ...workload, status: { ...workload.status, conditions: [], evictions: [{ cluster: 'eu-0', reason: 'ClusterLost' }] } }, from: { clusters: ['eu-0'] } }, '');
  assert.equal(evicted, 'ClusterLost: eu-0');
});

test('an entry of the history is a move', () => {
  const object = { kind: 'workload', namespace: 'shop', name: 'api' };
  const move = earlierMoveOf({
    revision: 7, time: '2026-03-01T12:00:00Z', object, after: { clusters: ['eu-1'] }, moved: [{ from: 'eu-0', to: 'eu-1', replicas: 3 }, { to: 'eu-2', replicas: 1 }],
    cause: { type: 'spec', object, field: 'spec.replicas', old: '3', new: '4' }, actor: { token: 'ci', request_id: 'r' },
  });
  assert.deepEqual([move.from, move.fromCount, move.to, move.toCount, move.at], [['eu-0 ×3'], 1, ['eu-1 ×3', 'eu-2 ×1'], 2, '2026-03-01T12:00:00Z']);
  assert.equal(move.why, 'spec.replicas of this workload changed: 3 → 4, by ci');
  const web = { kind: 'placement', namespace: 'shop', name: 'web' };
  assert.equal(earlierMoveOf({ revision: 8, time: '', object: web, moved: [{ from: 'a' }] }).why, 'it was deleted');
  assert.equal(earlierMoveOf({ revision: 9, time: '', object: web, after: { clusters: ['b'] }, moved: [{ from: 'a', to: 'b' }], cause: { type: 'metric' }, margin: { from: 'a', to: 'b', old: 0.5, new: 0.75, needed: 0.6 } }).why, 'a metric changed; score 0.75, needed was more than 0.6');
});

test('a cause is a clause', () => {
  const clause = (cause) => causeOf({ kind: 'placement', namespace: 'shop', name: 'web', cause });
  const web = { kind: 'placement', namespace: 'shop', name: 'web' };
  for (const [cause, want] of [
    [undefined, ''],
    [{ type: 'unknown' }, ''],
    [{ type: 'spec', object: web }, 'this placement was written'],
    [{ type: 'spec', object: web, field: 'spec.number_of_clusters', old: '1', new: '2' }, 'spec.number_of_clusters of this placement changed: 1 → 2'],
    [{ type: 'spec', object: web, actor: { request_id: 'r' } }, 'this placement was written'],
    [{ type: 'taint', object: { kind: 'cluster', name: 'a' }, actor: { token: 'ci', request_id: 'r' } }, 'the taints of cluster a changed, by ci'],
    [{ type: 'reschedule', object: web }, 'a fresh decision was requested'],
    [{ type: 'metric', object: { kind: 'metric', name: 'load' }, field: 'status.value', old: '0.1', new: '0.7' }, 'the value of metric load changed: 0.1 → 0.7'],
    [{ type: 'metric', object: { kind: 'metric', name: 'load' }, field: 'spec.max', old: '1', new: '9' }, 'spec.max of metric load changed: 1 → 9'],
    [{ type: 'metric' }, 'a metric changed'],
    [{ type: 'score' }, 'a placement score changed'],
    [{ type: 'score', object: { kind: 'placement_score', namespace: 'a', name: 'cost' } }, 'placement score a/cost was created or deleted'],
    [{ type: 'cluster', object: { kind: 'cluster', name: 'a' } }, 'cluster a was created or deleted'],
    [{ type: 'cluster_offline', object: { kind: 'cluster', name: 'a' }, field: 'status.state', old: 'online', new: 'offline' }, 'cluster a is no longer online'],
    [{ type: 'capacity' }, 'the room on a cluster changed'],
    [{ type: 'preemption' }, 'a workload of a higher priority took the room'],
    [{ type: 'time', object: web, field: 'spec.reschedule_after', old: '60s' }, 'the decision was older than reschedule_after (60s)'],
    [{ type: 'policy', object: { kind: 'propagation_policy', namespace: 'shop', name: 'p' }, field: 'spec.x', new: 'y'.repeat(200) }, `spec.x of propagation policy shop/p changed: none → ${'y'.repeat(119)}…`],
  ]) assert.equal(clause(cause), want);
});

test('columns of the matrix do not grow with the fleet', () => {
  const candidates = (n, names) => Array.from({ length: n }, (_, i) => ({ cluster: `c${i}`, scores: names(i).map((name) => ({ name, share: i })) }));
  assert.deepEqual(partsOf(candidates(3, () => ['price', 'load'])).map((c) => c.title), ['price', 'load']);
  const own = partsOf(candidates(10_000, (i) => [`m${i}`, 'stickiness']));
  assert.deepEqual(own.map((c) => [c.title, c.named]), [['part 1', true], ['part 2', true]]);
  assert.equal(own[0].most, 9999);
  assert.deepEqual(partsOf([{ cluster: 'a' }]), []);
});

test('checks are read as the server lists them', () => {
  assert.deepEqual(parseChecks('[+]running ok\n[!]objects warning: damaged objects: 1\n[-]store error: it is away\nreadyz check failed\n'), [
    { name: 'running', tone: 'good', detail: '' }, { name: 'objects', tone: 'warn', detail: 'damaged objects: 1' }, { name: 'store', tone: 'bad', detail: 'it is away' },
  ]);
});

test('a signal without a condition is neither good nor bad', () => {
  assert.equal(signalOf({ kind: 'metric', metadata: { name: 'm' } }).ok, undefined);
  assert.equal(signalOf({ kind: 'metric', metadata: { name: 'm' }, status: { conditions: [{ type: 'Available', status: 'False', reason: 'UnknownMetric' }] } }).ok, false);
});

test('ages are read at a glance', () => {
  const at = Date.parse('2026-03-01T12:00:00Z');
  assert.equal(ago('2026-03-01T11:59:58Z', at), 'just now');
  assert.equal(ago('2026-03-01T11:59:00Z', at), '1 min ago');
  assert.equal(ago('2026-02-27T09:00:00Z', at), '2 d 3 h ago');
  assert.equal(ago('', at), '');
  assert.equal(duration(45_000), '45 s');
  assert.equal(duration(3_660_000), '1 h 1 min');
  assert.equal(duration(0), '0 s');
});
