import assert from 'node:assert/strict';
import test from 'node:test';
import { createParser } from '../src/sse.js';

const stream = ': alive\nid: 7\n\nevent: put\ndata: {"a":\ndata: 1}\nid: 8\n\nevent: delete\ndata:{}\n\n';
const want = [
  { name: '', id: '7', data: '' },
  { name: 'put', id: '8', data: '{"a":\n1}' },
  { name: 'delete', id: '', data: '{}' },
];

test('events are the same however the stream is cut', () => {
  for (let size = 1; size <= stream.length; size++) {
    const parse = createParser();
    const events = [];
    for (let i = 0; i < stream.length; i += size) events.push(...parse(stream.slice(i, i + size)));
    assert.deepEqual(events, want, `in pieces of ${size}`);
  }
});

test('what is incomplete is not an event', () => {
  assert.deepEqual(createParser()('event: put\ndata: {}\n'), []);
});
