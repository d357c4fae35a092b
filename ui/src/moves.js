// Moves: what moves while the page is open, from where, to where and why, and what moved before.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { request } from './api.js';
import { causeOf } from './cause.js';
import { clustersOf } from './clusters.js';
import { readHistory } from './history.js';
import { html } from './html.js';
import { Empty, Failure, Pill, Since } from './parts.js';
import { formatNumber } from './quantity.js';
import { change, decisionLink, route } from './route.js';
import { idOf, summarize } from './summary.js';
import { Table } from './table.js';
import { now, serverNow } from './time.js';
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
    why: [causeOf(row), detailOf(row, object, joined)].filter(Boolean).join('; '),
  };
}

// detailOf says what a decision lacks, what drove it away, or how the new clusters were rated. The decision itself has
// the rest.
function detailOf(row, { status = {} }, joined) {
  if (row.held || row.message) return row.held ?? row.message;
  const eviction = (status.evictions ?? []).at(-1);
  if (eviction) return eviction.message || `${eviction.reason}: ${eviction.cluster}`;
  const scores = (status.decisions ?? []).filter((d) => joined.includes(d.cluster)).slice(0, 3).map((d) => d.withheld ? d.cluster : `${d.cluster} with score ${formatNumber(d.score)}`);
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

// forgetMoves drops what one reader saw before another one looks.
export function forgetMoves() {
  moves.value = [];
  minutes.clear();
  earlier.value = null;
}

async function readEarlier() {
  try {
    const history = await readHistory({});
    if (history) {
      earlier.value = history.moves;
      error.value = '';
      return;
    }
    const { items } = await request('v1/decisions?sort=-scheduled_at&limit=100');
    earlier.value = items.filter((row) => row.scheduled_at).map((row) => ({ id: `earlier ${idOf(row)}`, at: row.scheduled_at, row, to: row.clusters, toCount: row.cluster_count, why: [causeOf(row), row.held ?? row.message].filter(Boolean).join('; ') }));
    error.value = '';
  } catch (e) {
    error.value = e.message;
  }
}

// momentOf tells moves apart: an object moves once at a time.
const momentOf = (move) => `${idOf(move.row)} ${move.at}`;

// Moves is the view.
export function Moves() {
  const { find = '' } = route.value.params;
  useEffect(() => { if (earlier.value === null) readEarlier(); }, []);
  const seen = new Set(moves.value.map(momentOf));
  const before = (earlier.value ?? []).filter((m) => !seen.has(momentOf(m)));
  const list = [...moves.value, ...before].filter((m) => !find || `${m.row.namespace}/${m.row.name} ${m.from?.join(' ') ?? ''} ${m.to.join(' ')}`.includes(find));
  const columns = [
    { id: 'at', title: 'When', width: '8rem', wide: true, cell: (m) => html`<${Since} at=${m.at} />` },
    { id: 'what', title: 'What', width: 'minmax(0, 1.2fr)', cell: (m) => html`<div class="stack"><a tabindex="-1" href=${decisionLink(m.row)}><span class="muted">${m.row.namespace}/</span>${m.row.name}</a><small class="muted">${m.row.kind}</small></div>` },
    { id: 'move', title: 'From and to', width: 'minmax(0, 1.8fr)', cell: (m) => html`<${Way} move=${m} />` },
    { id: 'why', title: 'Why', width: 'minmax(0, 1.6fr)', wide: true, cell: (m) => html`<span class="why" title=${m.why}>${m.why}</span>` },
    { id: 'state', title: 'State', width: '9rem', wide: true, cell: (m) => (m.row.satisfied === 'False' ? html`<${Pill} tone="bad">not satisfied<//>` : '') },
  ];
  return html`<section class="view fill" aria-labelledby="title">
    <header class="bar"><h1 id="title">Moves</h1><p class="muted figures" aria-live="polite">${moves.value.length === kept ? `the last ${kept.toLocaleString()}` : moves.value.length.toLocaleString()} since this page was opened</p><${Pace} /></header>
    <div class="filters"><label class="grow">Find <input type="search" value=${find} placeholder="namespace/name or cluster" onInput=${(e) => change({ find: e.target.value.trim() })} /></label></div>
    ${error.value && html`<${Failure} error=${error.value} retry=${readEarlier} />`}
    <${Table} label="moves" columns=${columns} total=${list.length} row=${(i) => list[i]} keyOf=${(m) => m.id} rowHeight=${52} onOpen=${(m) => { location.hash = decisionLink(m.row); }}
      empty=${earlier.value !== null && html`<${Empty} title=${find ? 'Nothing matches' : 'Nothing has moved yet'}><p>${find ? 'No move matches.' : 'Decisions appear here the moment they change. This page can stay open.'}</p><//>`} />
  </section>`;
}

// Way says from where to where.
export function Way({ move }) {
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
