// Moves: what moved, from where, to where, why and because of whom: the history, and what happens now on top of it.
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { request } from './api.js';
import { causes } from './cause.js';
import { clustersOf } from './clusters.js';
import { html } from './html.js';
import { Empty, Failure, Pill, Since } from './parts.js';
import { formatNumber } from './quantity.js';
import { change, decisionLink, route } from './route.js';
import { summarize } from './summary.js';
import { Table } from './table.js';
import { instantOf, localOf, now, serverNow } from './time.js';
import { Entries, Nothing, useTimeline } from './timeline.js';
import { onEvents } from './watch.js';

// Older moves are forgotten, so that a page that stays open does not grow.
const kept = 2000;

// moves are the latest ones, newest first; minutes counts them for an hour.
export const moves = signal([]);
const minutes = new Map();
const earlier = signal(null);
const error = signal('');
let count = 0;

// moveOf is the move that an event shows, or undefined.
export function moveOf({ type, object, from }, at) {
  if ((object.kind !== 'placement' && object.kind !== 'workload') || type !== 'put' || !from) return undefined;
  const row = summarize(object);
  const to = clustersOf(object);
  const replicas = object.kind === 'workload' ? Object.fromEntries((object.status?.clusters ?? []).map((c) => [c.name, c.replicas])) : undefined;
  const name = (cluster, amounts) => (amounts?.[cluster] ? `${cluster} ×${amounts[cluster]}` : cluster);
  const left = from.clusters.filter((c) => !to.includes(c) || (replicas && from.replicas?.[c] !== replicas[c]));
  const joined = to.filter((c) => !from.clusters.includes(c) || (replicas && from.replicas?.[c] !== replicas[c]));
  return {
    id: ++count, at: object.status?.scheduled_at ?? at, row,
    from: left.slice(0, 8).map((c) => name(c, from.replicas)), fromCount: left.length,
    to: joined.slice(0, 8).map((c) => name(c, replicas)), toCount: joined.length,
    why: whyOf(row, object, joined),
  };
}

// whyOf says why a decision is as it is, as far as its object tells: what it lacks, what drove it away, or how the new
// clusters were rated. The decision itself has the rest.
function whyOf(row, { status = {} }, joined) {
  if (row.held || row.message) return row.held ?? row.message;
  const eviction = (status.evictions ?? []).at(-1);
  if (eviction) return eviction.message || `${eviction.reason}: ${eviction.cluster}`;
  const scores = (status.decisions ?? []).filter((d) => joined.includes(d.cluster)).slice(0, 3).map((d) => `${d.cluster} with score ${formatNumber(d.score)}`);
  return scores.length > 0 ? `chose ${scores.join(', ')}` : '';
}

onEvents((events) => {
  const time = serverNow();
  const found = events.map((event) => moveOf(event, new Date(time).toISOString())).filter(Boolean);
  if (found.length === 0) return;
  const minute = Math.floor(time / 60_000);
  minutes.set(minute, (minutes.get(minute) ?? 0) + found.length);
  for (const old of minutes.keys()) if (old < minute - 60) minutes.delete(old);
  moves.value = [...found.reverse(), ...moves.value].slice(0, kept);
});

// forget drops what one reader saw before another one looks.
export function forgetMoves() {
  moves.value = [];
  minutes.clear();
  earlier.value = null;
}

async function readEarlier() {
  try {
    const { items } = await request('v1/decisions?sort=-scheduled_at&limit=100');
    earlier.value = items.filter((row) => row.scheduled_at).map((row) => ({ id: `earlier ${row.kind}/${row.namespace}/${row.name}`, at: row.scheduled_at, row, to: row.clusters, toCount: row.cluster_count, why: row.held ?? row.message ?? '' }));
    error.value = '';
  } catch (e) {
    error.value = e.message;
  }
}

// filterOf makes the filter of the history from the parameters of the address. object is "namespace/name", "namespace/" or
// "name"; times are RFC 3339.
export function filterOf({ object = '', cluster, cause, since, until }) {
  const at = object.indexOf('/');
  const filter = { namespace: at < 0 ? '' : object.slice(0, at), name: object.slice(at + 1), cluster, cause, since, until };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
}

// Moves is the view.
export function Moves() {
  const { object = '', cluster = '', cause = '', since = '', until = '' } = route.value.params;
  const filter = useMemo(() => filterOf({ object, cluster, cause, since, until }), [object, cluster, cause, since, until]);
  const timeline = useTimeline(filter);
  const filtered = Object.keys(filter).length > 0;
  return html`<section class="view fill" aria-labelledby="title">
    <header class="bar"><h1 id="title">Moves</h1><p class="muted figures" aria-live="polite">${moves.value.length === kept ? `the last ${kept.toLocaleString()}` : moves.value.length.toLocaleString()} since this page was opened</p><${Pace} /></header>
    ${timeline.absent.value ? html`<${Live} why=${timeline.absent.value} />` : html`
    <div class="filters" role="search">
      <label class="grow">Object <input type="search" value=${object} placeholder="namespace/name" onChange=${(e) => change({ object: e.target.value.trim() })} /></label>
      <label>Cluster <input type="search" value=${cluster} placeholder="any" onChange=${(e) => change({ cluster: e.target.value.trim() })} /></label>
      <label>Cause <select value=${cause} onChange=${(e) => change({ cause: e.target.value })}><option value="">any</option>${Object.entries(causes).map(([id, { title }]) => html`<option key=${id} value=${id}>${title}</option>`)}</select></label>
      <label>Since <input type="datetime-local" value=${localOf(since)} onChange=${(e) => change({ since: instantOf(e.target.value) })} /></label>
      <label>Until <input type="datetime-local" value=${localOf(until)} onChange=${(e) => change({ until: instantOf(e.target.value) })} /></label>
      ${filtered && html`<button class="quiet" onClick=${() => change({ object: '', cluster: '', cause: '', since: '', until: '' })}>Show all</button>`}
    </div>
    <${Entries} timeline=${timeline} label="moves" empty=${html`<${Nothing} filtered=${filtered} />`} />`}
  </section>`;
}

// Live shows what the page has seen itself, where the server keeps no history.
function Live({ why }) {
  const { find = '' } = route.value.params;
  useEffect(() => { if (earlier.value === null) readEarlier(); }, []);
  const seen = new Set(moves.value.map((m) => `${m.row.kind}/${m.row.namespace}/${m.row.name}`));
  const before = (earlier.value ?? []).filter((m) => !seen.has(`${m.row.kind}/${m.row.namespace}/${m.row.name}`));
  const list = [...moves.value, ...before].filter((m) => !find || `${m.row.namespace}/${m.row.name} ${m.from?.join(' ') ?? ''} ${m.to.join(' ')}`.includes(find));
  const columns = [
    { id: 'at', title: 'When', width: '8rem', wide: true, cell: (m) => html`<${Since} at=${m.at} />` },
    { id: 'what', title: 'What', width: 'minmax(0, 1.2fr)', cell: (m) => html`<div class="stack"><a tabindex="-1" href=${decisionLink(m.row)}><span class="muted">${m.row.namespace}/</span>${m.row.name}</a><small class="muted">${m.row.kind}</small></div>` },
    { id: 'move', title: 'From and to', width: 'minmax(0, 1.8fr)', cell: (m) => html`<${Way} move=${m} />` },
    { id: 'why', title: 'Why', width: 'minmax(0, 1.6fr)', wide: true, cell: (m) => html`<span class="why" title=${m.why}>${m.why}</span>` },
    { id: 'state', title: 'State', width: '9rem', wide: true, cell: (m) => (m.row.satisfied === 'False' ? html`<${Pill} tone="bad">not satisfied<//>` : '') },
  ];
  return html`<p class="muted">What this page has seen since it was opened: ${why}.</p>
    <div class="filters"><label class="grow">Find <input type="search" value=${find} placeholder="namespace/name or cluster" onInput=${(e) => change({ find: e.target.value.trim() })} /></label></div>
    ${error.value && html`<${Failure} error=${error.value} retry=${readEarlier} />`}
    <${Table} label="moves" columns=${columns} total=${list.length} row=${(i) => list[i]} keyOf=${(m) => m.id} rowHeight=${52} onOpen=${(m) => { location.hash = decisionLink(m.row); }}
      empty=${earlier.value !== null && html`<${Empty} title=${find ? 'Nothing matches' : 'Nothing has moved yet'}><p>${find ? 'No move matches.' : 'Decisions appear here the moment they change. This page can stay open.'}</p><//>`} />`;
}

function Way({ move }) {
  if (!move.from) return html`<span class="muted">since then on</span> <${Some} names=${move.to} count=${move.toCount} />`;
  if (move.fromCount === 0 && move.toCount === 0) return html`<span class="muted">another order</span>`;
  return html`<span class="way">${move.fromCount > 0 ? html`<${Some} names=${move.from} count=${move.fromCount} />` : html`<span class="muted">new</span>`}
    <span class="arrow" aria-label="to">→</span>${move.toCount > 0 ? html`<${Some} names=${move.to} count=${move.toCount} />` : html`<span class="muted">nowhere</span>`}</span>`;
}

function Some({ names, count: all }) {
  return html`<span>${names.join(', ')}${all > names.length ? ` and ${all - names.length} more` : ''}</span>`;
}

// Pace draws the moves of each minute of the last hour.
function Pace() {
  const minute = Math.floor(now.value / 60_000);
  const values = Array.from({ length: 60 }, (_, i) => minutes.get(minute - 59 + i) ?? 0);
  const most = Math.max(1, ...values);
  const total = values.reduce((a, b) => a + b, 0);
  return html`<svg class="pace" viewBox="0 0 240 28" role="img" aria-label=${`${total} moves in the last hour, at most ${Math.max(...values)} in a minute`} preserveAspectRatio="none">
    ${values.map((v, i) => html`<rect key=${i} x=${i * 4} y=${28 - Math.max(1, (v / most) * 27)} width="3" height=${Math.max(1, (v / most) * 27)} class=${v ? 'some' : ''}></rect>`)}
  </svg>`;
}
