// What changes, as it changes: one watch of the server, resumed where it broke.
import { signal } from '@preact/signals';
import { open, pause, Problem, query } from './api.js';
import { createParser } from './sse.js';

// connection is the state of the watch: 'connecting', 'live' or 'broken'.
export const connection = signal('connecting');

const handlers = new Set();

// onEvents calls a function with the events of each piece of the stream, and returns a function that stops it.
export function onEvents(handler) {
  handlers.add(handler);
  return () => handlers.delete(handler);
}

// Who may not read all of these watches everything instead: the server shows what may be read.
let kinds = 'cluster,cluster_set,placement,workload';

// A quiet watch sends a bookmark every 15 seconds: without one, the connection is gone though nobody said so.
const silence = 45_000;

// Events that wait are handled in pieces, so that a burst of them does not block the page.
const piece = 200;

// follow keeps the watch until the signal aborts. from is the revision that the page shows; reload fetches it anew where
// the server no longer knows what changed since, and returns its revision.
export async function follow(from, reload, aborted) {
  let position = from;
  for (let failures = 0; !aborted.aborted;) {
    try {
      connection.value = failures > 0 ? 'broken' : 'connecting';
      position = await read(position, aborted, (id) => { position = id; failures = 0; connection.value = 'live'; });
    } catch (error) {
      if (aborted.aborted || error.status === 401) return;
      if (error.status === 403 && kinds) {
        kinds = '';
        continue;
      }
      // A watch that fell behind is cut off, and says from where to go on.
      if (error.position) position = error.position;
      if (error.status === 410) {
        position = await reload().catch(() => position);
      }
    }
    failures++;
    connection.value = 'broken';
    await sleep(Math.min(15_000, 250 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2), aborted);
  }
}

async function read(position, aborted, told) {
  const own = new AbortController();
  const end = () => own.abort();
  aborted.addEventListener('abort', end);
  let alarm;
  const listen = () => { clearTimeout(alarm); alarm = setTimeout(end, silence); };
  try {
    listen();
    const response = await open(`v1/watch${query({ kinds })}`, { signal: own.signal, headers: { Accept: 'text/event-stream', 'Last-Event-ID': position } });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = createParser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return position;
      listen();
      const events = parse(value);
      for (let i = 0; i < events.length; i += piece) {
        if (i > 0) await pause();
        deliver(events.slice(i, i + piece));
      }
      const last = events.findLast((e) => e.id);
      if (last) {
        position = last.id;
        told(position);
      }
    }
  } finally {
    clearTimeout(alarm);
    aborted.removeEventListener('abort', end);
    own.abort();
  }
}

function deliver(events) {
  const changes = [];
  for (const event of events) {
    if (event.name === 'error') throw Object.assign(new Problem(0, JSON.parse(event.data)), { position: event.id });
    if (event.data) changes.push(JSON.parse(event.data));
  }
  if (changes.length > 0) for (const handler of handlers) handler(changes);
}

function sleep(milliseconds, aborted) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    aborted.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
