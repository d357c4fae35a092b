import assert from 'node:assert/strict';
import test from 'node:test';
import { formatRoute, parseRoute } from '../src/route.js';

test('an address is read as it was written', () => {
  for (const [view, parts, params] of [
    ['fleet', [], {}],
    ['decision', ['placement', 'shop', 'web'], { tab: 'json' }],
    ['what-if', [], { taint: 'eu-1=a/b=c:NoSelect,eu-2=d:NoSelect', spec: '{"a":"<b>&=?#/%"}' }],
  ]) {
    assert.deepEqual(parseRoute(formatRoute(view, parts, params)), { view, parts, params });
  }
});

test('odd addresses lead somewhere', () => {
  assert.deepEqual(parseRoute(''), { view: 'fleet', parts: [], params: {} });
  assert.equal(parseRoute('#/%zz/%E0%A4%A').view, '%zz');
  assert.deepEqual(parseRoute('#/a?__proto__=x').params, Object.assign({}, parseRoute('#/a?__proto__=x').params));
  assert.equal({}.x, undefined);
  assert.equal(formatRoute('fleet', [], { group: '', resource: undefined }), '#/fleet');
});
