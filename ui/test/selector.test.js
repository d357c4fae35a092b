import assert from 'node:assert/strict';
import test from 'node:test';
import { selects } from '../src/selector.js';

test('selectors match as the server says', () => {
  const labels = { tier: 'prod', zone: 'a' };
  const is = (operator, key, ...values) => selects({ match_expressions: [{ key, operator, values }] }, labels);
  assert.ok(selects({}, labels));
  assert.ok(selects({ match_labels: { tier: 'prod' } }, labels));
  assert.ok(!selects({ match_labels: { tier: 'prod', zone: 'b' } }, labels));
  assert.ok(is('In', 'zone', 'a', 'b') && !is('In', 'zone', 'b') && !is('In', 'absent', 'a'));
  assert.ok(is('NotIn', 'zone', 'b') && !is('NotIn', 'zone', 'a') && is('NotIn', 'absent', 'a'));
  assert.ok(is('Exists', 'tier') && !is('Exists', 'absent'));
  assert.ok(is('DoesNotExist', 'absent') && !is('DoesNotExist', 'tier'));
  assert.ok(!is('Exists', 'toString'), 'what every object inherits is no label');
  assert.ok(!is('Unheard', 'tier'));
});
