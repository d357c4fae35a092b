import assert from 'node:assert/strict';
import test from 'node:test';
import { holder, standsOn } from '../src/decision.js';
import { factsOf } from '../src/demand.js';
import { freezeOf, inForce } from '../src/freeze.js';
import { approvalOf, stateOf, stepsOf } from '../src/rollout.js';

const rollout = {
  revision: 4, step: 2, total_steps: 3, waiting_for: 'approval', target: [{ cluster: 'green-1' }],
  moves: [
    { cluster: 'green-1', step: 1, started_at: 't', healthy_since: 't', done_at: 't' },
    { cluster: 'green-2', step: 2, needs_approval: true, group: 'canary' }, { cluster: 'blue-1', step: 2, leaves: true },
    { cluster: 'green-3', step: 3, replicas: 5 },
  ],
};

test('an approval names exactly what is approved', () => {
  assert.deepEqual(approvalOf(rollout), { body: { revision: 4, step: 2 }, text: 'Approve step 2 of 3: to green-2, leave blue-1' });
  assert.equal(approvalOf({ ...rollout, step: 3 }).text, 'Approve step 3 of 3: to green-3 ×5');
  const failed = [...rollout.moves, { cluster: 'bad', step: 2, started_at: 't', failed_at: 't' }, { cluster: 'recovered', step: 2, failed_at: 't', healthy_since: 't' }];
  assert.equal(approvalOf({ ...rollout, waiting_for: 'retry', moves: failed }).text, 'Try step 2 of 3 again: bad');
  for (const waiting of ['health', 'min_success_time', undefined]) assert.equal(approvalOf({ ...rollout, waiting_for: waiting }), undefined);
  const many = Array.from({ length: 30 }, (_, i) => ({ cluster: `c${i}`, step: 2 }));
  assert.equal(approvalOf({ ...rollout, moves: many }).text, 'Approve step 2 of 3: to c0, c1, c2 and 27 more');
});

test('a rollout shows its steps, of a long one those around the current one', () => {
  const { steps, before, after } = stepsOf(rollout);
  assert.deepEqual(steps.map((s) => [s.number, s.moves.length, s.current, s.needsApproval]), [[1, 1, false, false], [2, 2, true, true], [3, 1, false, false]]);
  assert.deepEqual([before, after, steps[1].groups], [0, 0, ['canary']]);
  const long = stepsOf({ step: 50, total_steps: 100, moves: Array.from({ length: 100 }, (_, i) => ({ cluster: `c${i}`, step: i + 1 })) });
  assert.deepEqual([long.steps.length, long.before, long.after], [7, 46, 47]);
  const wide = stepsOf({ step: 1, total_steps: 1, moves: Array.from({ length: 1000 }, (_, i) => ({ cluster: `c${i}`, step: 1 })) });
  assert.deepEqual([wide.steps[0].moves.length, wide.steps[0].more], [12, 988]);
});

test('a cluster of a rollout has one state', () => {
  for (const [move, title] of [
    [{}, 'to come'], [{ leaves: true }, 'to be left'], [{ started_at: 't' }, 'not healthy yet'], [{ started_at: 't', failed_at: 't' }, 'failed'],
    [{ started_at: 't', failed_at: 't', healthy_since: 't' }, 'healthy'], [{ done_at: 't', failed_at: 't' }, 'done'], [{ done_at: 't', leaves: true }, 'left'],
  ]) assert.equal(stateOf(move).title, title);
});

test('a demand lists what each missing cluster must have', () => {
  assert.deepEqual(factsOf({ clusters: 2, replicas: 3, resources: { cpu: '8' }, labels: { location: 'DE' }, region: 'eu', choices: { 'labels.location': ['DE', 'FR'] }, spread: [{ by: 'zone', clusters: 1 }, { by: 'labels.rack', value: 'a', clusters: 1 }] }), [
    ['Free on each', '8 cpu'], ['Room on each', 'for 3 replicas'], ['Labels', 'location=DE'], ['Region', 'eu'],
    ['Spread', '1 in zone of its own; 1 in label rack a'], ['Also possible', 'label location: DE or FR'],
  ]);
  assert.deepEqual(factsOf({ clusters: 1 }), []);
});

test('a freeze is asked for with its reason, its end and its namespaces', () => {
  const time = Date.parse('2026-03-01T12:00:00Z');
  assert.deepEqual(freezeOf({ reason: ' incident ', namespaces: 'shop, bank', lasts: '4', at: '' }, time), { reason: 'incident', until: '2026-03-01T16:00:00.000Z', namespaces: ['shop', 'bank'] });
  assert.deepEqual(freezeOf({ reason: 'x', namespaces: ' ', lasts: '', at: '' }, time), { reason: 'x' });
  assert.equal(Date.parse(freezeOf({ reason: 'x', namespaces: '', lasts: 'at', at: '2026-03-02T08:00' }, time).until), new Date('2026-03-02T08:00').getTime());
});

test('a freeze that is over holds nothing', () => {
  const at = Date.parse('2026-03-01T12:00:00Z');
  const freezes = [{ namespace: 'shop', name: 'a' }, { name: 'b', until: '2026-03-01T12:00:01Z' }, { name: 'c', until: '2026-03-01T12:00:00Z' }];
  assert.deepEqual(inForce(freezes, at).map((f) => f.name), ['b', 'a']);
  assert.deepEqual(inForce(undefined, at), []);
});

test('what holds a move, and where a decision stands, are said in words', () => {
  assert.equal(holder({ by: 'freeze', name: 'incident' }), 'a freeze: incident');
  assert.equal(holder({ by: 'window', name: 'nights' }), 'the window nights');
  assert.equal(holder({ by: 'budget' }), 'the budget of the object itself');
  assert.deepEqual(standsOn({ status: { clusters: ['a', { name: 'b', replicas: 2 }] } }), ['a', 'b ×2']);
  assert.deepEqual(standsOn({}), []);
});
