import assert from 'node:assert/strict';
import test from 'node:test';
import { group } from '../src/grouping.js';
import { at, boxOf, hit, layout, neighbor, sizeFor } from '../src/tiles.js';

const members = (n, from = 0) => Array.from({ length: n }, (_, i) => ({ name: `c${from + i}` }));
const groups = [{ name: 'a', members: members(7) }, { name: 'b', members: members(1, 7) }, { name: '', members: members(20, 8) }];

test('every tile is where it is hit, and none overlaps', () => {
  for (const size of ['small', 'medium', 'large']) {
    for (const width of [10, 100, 333, 1200]) {
      const plan = layout(groups, width, size);
      assert.equal(plan.count, 28);
      for (let i = 0; i < plan.count; i++) {
        const box = boxOf(plan, i);
        assert.equal(hit(plan, box.x + box.width / 2, box.y + box.height / 2), i, `${size} ${width}: the middle of ${i}`);
        assert.equal(hit(plan, box.x, box.y), i, `${size} ${width}: the corner of ${i}`);
        assert.equal(at(plan, i).name, `c${i}`);
        assert.ok(box.y + box.height <= plan.height);
      }
      assert.equal(hit(plan, 5, plan.sections[0].top + 1), -1, 'a heading is no tile');
    }
  }
});

test('keys reach every tile and never leave', () => {
  const plan = layout(groups, 100, 'small');
  const seen = new Set();
  for (let i = 0, n = 0; n < 40; n++) { seen.add(i); i = neighbor(plan, i, 'ArrowRight'); }
  assert.equal(seen.size, 28);
  let i = 0;
  for (let n = 0; n < 30; n++) {
    const next = neighbor(plan, i, 'ArrowDown');
    assert.ok(next >= i && next < 28);
    i = next;
  }
  assert.ok(plan.sections[2].first <= i, 'down leads to the last group');
  for (let n = 0; n < 30; n++) i = neighbor(plan, i, 'ArrowUp');
  assert.ok(i < plan.columns, 'up leads back to the first row');
  assert.equal(neighbor(plan, 5, 'End'), 27);
  assert.equal(neighbor(plan, 5, 'Home'), 0);
  assert.equal(neighbor(plan, 5, 'x'), 5);
});

test('tiles become smaller with their number', () => {
  assert.deepEqual([10, 1000, 10_000].map(sizeFor), ['large', 'medium', 'small']);
});

test('groups hold every cluster, in the order people expect', () => {
  const clusters = [
    { name: 'a', region: 'eu-10', labels: { team: 'x' }, state: 'online' }, { name: 'b', region: 'eu-2', labels: {}, state: 'offline' }, { name: 'c', region: '', labels: { team: 'y' }, state: 'online' },
  ];
  const sets = new Map([['all', { selector: {} }], ['some', { clusters: ['b'] }]]);
  const names = (by) => group(clusters, by, sets).map((g) => `${g.name}:${g.members.map((m) => m.name).join('')}`).join(' ');
  assert.equal(names('region'), 'eu-2:b eu-10:a :c');
  assert.equal(names('label:team'), 'x:a y:c :b');
  assert.equal(names('set'), 'all:abc some:b');
  assert.equal(names('state'), 'offline:b online:ac');
});
