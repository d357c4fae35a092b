import assert from 'node:assert/strict';
import test from 'node:test';
import { formatNumber, formatQuantity, parseQuantity } from '../src/quantity.js';

test('quantities are read as Kubernetes writes them', () => {
  for (const [text, want] of Object.entries({ 64: 64, '500m': 0.5, '1.5': 1.5, '256Gi': 256 * 2 ** 30, '2k': 2000, '1e3': 1000, '1E': 1e18, '100n': 1e-7, '-1': -1 })) {
    assert.ok(Math.abs(parseQuantity(text) - want) <= Math.abs(want) * 1e-12, `${text} is ${parseQuantity(text)}, want ${want}`);
  }
  for (const text of ['', 'x', '1 Gi', '1gi', '.', undefined, null]) assert.ok(Number.isNaN(parseQuantity(text)), `${text} is not a quantity`);
});

test('quantities are written shortly', () => {
  assert.equal(formatQuantity(256 * 2 ** 30, 'memory'), '256 Gi');
  assert.equal(formatQuantity(1536, 'memory'), '1.5 Ki');
  assert.equal(formatQuantity(0.5, 'cpu'), '0.5');
  assert.equal(formatQuantity(12_500, 'cpu'), '12.5k');
  assert.equal(formatQuantity(0, 'cpu'), '0');
  assert.equal(formatQuantity(NaN, 'cpu'), 'unknown');
  assert.equal(formatNumber(0.666666666), '0.6667');
  assert.equal(formatNumber(undefined), '');
});
