// The timeline: what the history of decisions says, newest first. The server filters it; pages backwards are read as one
// scrolls, and what happens now comes on top.
import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { query, request } from './api.js';
import { actorOf, causeOf, causes, clustersIn, marginOf, wayOf } from './cause.js';
import { html } from './html.js';
import { narrow } from './media.js';
import { Empty, Failure, Since } from './parts.js';
import { formatRoute, go, pastLink } from './route.js';
import { Table } from './table.js';
import { clock } from './time.js';
import { onEvents } from './watch.js';

const pageSize = 100;
// Who scrolls further than this looks for something: a filter finds it.
const most = 20_000;
// A page that stays open at the newest entries keeps this many: older ones are read again when somebody scrolls.
const kept = 2000;
// New entries that are read one page after another before the list begins anew.
const freshPages = 5;

// entryID identifies an entry: a transaction may write many decisions.
export const entryID = ({ revision, object, gap }) => (gap ? `gap ${gap.since} ${gap.until}` : `${object.kind}/${object.namespace ?? ''}/${object.name}@${revision}`);

// entriesOf returns the entries of a page, newest first, with its gaps where they are.
export function entriesOf({ items, gaps = [] }) {
  if (gaps.length === 0) return items;
  return [...items, ...gaps.map((gap) => ({ gap, revision: gap.until }))].sort((a, b) => b.revision - a.revision);
}

// merge puts the entries of newer pages before those that are known. known is true if nothing is missing in between.
export function merge(newer, entries) {
  const seen = new Set(entries.slice(0, newer.length + pageSize).map(entryID));
  const fresh = newer.filter((entry) => !seen.has(entryID(entry)));
  return { entries: [...fresh, ...entries], known: fresh.length < newer.length };
}

// concerns reports whether an event may be about an entry that a filter lets through.
export function concerns({ kind, namespace, name, cluster }, { type, object, from }) {
  if (object.kind !== 'placement' && object.kind !== 'workload') return false;
  if (!from && type !== 'delete') return false;
  const { metadata } = object;
  if ((kind && object.kind !== kind) || (namespace && metadata.namespace !== namespace) || (name && metadata.name !== name)) return false;
  return !cluster || type === 'delete' || from.clusters.includes(cluster) || (object.status?.clusters ?? []).some((c) => (c.name ?? c) === cluster);
}

// Timeline is the part of the history that one filter lets through, as far as it was in sight.
export class Timeline {
  entries = [];
  next = undefined; // where the next page begins; undefined before the first one
  version = signal(0);
  error = signal('');
  // absent says why there is no history, if the server keeps none.
  absent = signal('');
  // waiting is the number of events that were not read yet because the reader looks at older entries.
  waiting = signal(0);
  top = true;
  ended = new AbortController();

  constructor(filter) {
    this.filter = filter;
    this.stop = onEvents((events) => {
      const found = events.filter((event) => concerns(filter, event)).length;
      if (found === 0 || this.absent.value) return;
      this.waiting.value += found;
      this.soon();
    });
  }

  end() {
    this.stop();
    this.ended.abort();
    clearTimeout(this.timer);
  }

  // soon reads what is new, if the newest entries are in sight: under the eyes of a reader of older ones, nothing moves.
  soon() {
    if (!this.top) return;
    this.timer ??= setTimeout(async () => {
      await this.refresh();
      this.timer = undefined;
      if (this.waiting.value > 0) this.soon();
    }, this.entries.length === 0 ? 50 : 400);
  }

  // show is told which rows are in sight.
  show = (first, last) => {
    this.top = first === 0;
    if (this.top && this.waiting.value > 0) this.soon();
    if (this.next === undefined || (last >= this.entries.length && this.next && this.entries.length < most)) this.older();
  };

  get total() { return this.entries.length + (this.next === undefined || this.next === '' || this.entries.length >= most ? 0 : 1); }

  read(next) {
    return request(`v1/history${query({ ...this.filter, limit: pageSize, continue: next })}`, { signal: this.ended.signal });
  }

  async older() {
    if (this.loading) return;
    this.loading = true;
    try {
      const page = await this.read(this.next);
      this.entries = [...this.entries, ...entriesOf(page)];
      this.next = page.continue ?? '';
      this.error.value = '';
    } catch (error) {
      this.failed(error, () => this.older());
    }
    this.loading = false;
    this.version.value++;
  }

  async refresh() {
    if (this.loading) return;
    this.loading = true;
    const waiting = this.waiting.value;
    try {
      let newer = [];
      let next;
      for (let read = 0; ; read++) {
        const page = await this.read(next);
        newer = [...newer, ...entriesOf(page)];
        next = page.continue ?? '';
        const merged = merge(newer, this.entries);
        if (merged.known) {
          this.entries = merged.entries;
          break;
        }
        if (!next || read === freshPages || this.entries.length === 0) {
          this.entries = newer;
          this.next = next;
          break;
        }
      }
      if (this.entries.length > kept) {
        this.entries = newer;
        this.next = next;
      }
      this.error.value = '';
    } catch (error) {
      this.failed(error, () => this.refresh());
    }
    this.waiting.value = Math.max(0, this.waiting.value - waiting);
    this.loading = false;
    this.version.value++;
  }

  failed(error, again) {
    if (this.ended.signal.aborted) return;
    this.again = again;
    // The history before this is not kept any more: that is its end.
    if (error.status === 410) this.next = '';
    else if (error.status === 404) this.absent.value = error.message;
    else this.error.value = error.message;
  }
}

// useTimeline keeps the timeline of a filter while it is shown.
export function useTimeline(filter) {
  const timeline = useMemo(() => new Timeline(filter), [JSON.stringify(filter)]);
  useEffect(() => { timeline.show(0, pageSize); return () => timeline.end(); }, [timeline]);
  return timeline;
}

// Entries shows a timeline. own says that all entries are of one object, which need not be named.
export function Entries({ timeline, own, label = 'history', empty }) {
  const box = useRef(null);
  timeline.version.value; // shows changes
  const columns = useMemo(() => [
    { id: 'at', title: 'When', width: '9.5rem', wide: !own, className: 'when', cell: (e) => html`<${When} entry=${e} own=${own} />` },
    ...(own ? [] : [{ id: 'what', title: 'What', width: 'minmax(0, 1.1fr)', cell: (e) => html`<${What} entry=${e} />` }]),
    { id: 'move', title: 'From and to', width: 'minmax(0, 1.5fr)', cell: (e) => html`<${Move} entry=${e} />` },
    { id: 'why', title: 'Why', width: 'minmax(0, 2fr)', wide: true, cell: (e) => html`<${Why} entry=${e} />` },
  ], [own]);
  const newest = () => { box.current.querySelector('[role=grid]').scrollTop = 0; timeline.show(0, pageSize); };
  return html`<div class="fill timeline" ref=${box}>
    ${timeline.error.value && html`<${Failure} error=${timeline.error.value} retry=${() => timeline.again()} />`}
    ${timeline.waiting.value > 0 && !timeline.top && html`<div class="note" role="status"><p>Decisions have changed since.</p><button class="quiet" onClick=${newest}>Show the newest</button></div>`}
    <${Table} label=${label} columns=${columns} total=${timeline.total} row=${(i) => rowOf(timeline.entries[i])} keyOf=${entryID} onRange=${timeline.show} rowHeight=${66} narrowHeight=${92}
      onOpen=${(e) => { const link = linkOf(e); if (link) location.hash = link; }} empty=${timeline.next === '' && (empty ?? html`<p class="muted pad">Nothing is recorded.</p>`)} />
    ${timeline.entries.length >= most && timeline.next && html`<p class="muted">These are the newest ${timeline.entries.length.toLocaleString()}. Narrow the time to see older ones.</p>`}
  </div>`;
}

const rowOf = (entry) => entry && { ...entry, className: entry.gap ? 'gap' : causes[entry.cause.type]?.tone ?? '' };

// linkOf is the address of what an entry is about, as it was then. What ended with its object is shown as it was before.
export function linkOf({ object, revision, after }) {
  if (object?.kind === 'cluster') return formatRoute('fleet', [], { cluster: object.name });
  if (object?.kind !== 'placement' && object?.kind !== 'workload') return undefined;
  return pastLink(object, after ? revision : revision - 1);
}

function When({ entry, own }) {
  if (entry.gap) return html`<span class="muted">gap</span>`;
  return html`<div class="stack">${own ? html`<a tabindex="-1" href=${linkOf(entry)}>${clock(entry.time)}</a>` : html`<span>${clock(entry.time)}</span>`}<small class="muted"><${Since} at=${entry.time} /></small>${narrow.value && html`<small class="muted">${causes[entry.cause.type]?.title ?? entry.cause.type}</small>`}</div>`;
}

function What({ entry }) {
  if (entry.gap) return html`<span class="muted">Decisions may be missing here</span>`;
  const { object } = entry;
  return html`<div class="stack"><a tabindex="-1" href=${linkOf(entry)}>${object.namespace && html`<span class="muted">${object.namespace}/</span>`}${object.name}</a>
    <small class="muted">${narrow.value ? html`<${Since} at=${entry.time} />` : object.kind.replaceAll('_', ' ')}</small></div>`;
}

// some lists the first names. A decision may have thousands.
const some = (names, shown = 6) => `${names.slice(0, shown).join(', ')}${names.length > shown ? ` and ${(names.length - shown).toLocaleString()} more` : ''}`;

// Way says what moved, from where, to where.
export function Way({ entry }) {
  const { from, to } = wayOf(entry);
  if (from.length === 0 && to.length === 0) return html`<span class="muted">${entry.after ? (entry.after.clusters.length > 0 ? 'another order, or other nodes' : 'nowhere') : 'deleted'}</span>`;
  return html`<span class="way">${from.length > 0 ? some(from) : html`<span class="muted">${entry.before ? 'nowhere' : 'new'}</span>`}<span class="arrow" aria-label="to">→</span>${to.length > 0 ? some(to) : html`<span class="muted">${entry.after ? 'nowhere' : 'deleted'}</span>`}</span>`;
}

function Move({ entry }) {
  if (entry.gap) return html`<span class="why">${entry.gap.reason}</span>`;
  const before = clustersIn(entry.before);
  const after = clustersIn(entry.after);
  // What stays besides what moves, if anything may.
  const more = entry.before && Math.max(before.length, after.length) > 1;
  return html`<div class="lines"><${Way} entry=${entry} />${more && !narrow.value && html`<small class="muted" title=${`before: ${some(before, 30) || 'nowhere'}; after: ${some(after, 30) || 'nowhere'}`}>then on ${some(after) || 'nowhere'}</small>`}${narrow.value && html`<small class="muted why">${causeOf(entry)}</small>`}</div>`;
}

function Why({ entry }) {
  if (entry.gap) return '';
  const cause = causeOf(entry);
  const more = [actorOf(entry), marginOf(entry)].filter(Boolean).join('; ');
  return html`<div class="lines"><span class="why" title=${cause}>${cause}</span>${more && html`<small class="muted" title=${more}>${more}</small>`}</div>`;
}

// Entry says all that the history has of one change.
export function Entry({ entry }) {
  const rows = [
    ['Moved', html`<${Way} entry=${entry} />`],
    ['Before', some(clustersIn(entry.before), 100) || 'nowhere'],
    ['After', some(clustersIn(entry.after), 100) || (entry.after ? 'nowhere' : 'deleted')],
    ['Cause', causeOf(entry)],
    ['Written', actorOf(entry)],
    ['Margin', marginOf(entry)],
  ];
  return html`<dl class="facts">${rows.filter(([, value]) => value).map(([title, value]) => html`<dt key=${title}>${title}</dt><dd>${value}</dd>`)}</dl>`;
}

// Nothing says that no entry matches, or that nothing has moved.
export function Nothing({ filtered }) {
  return filtered
    ? html`<${Empty} title="Nothing matches"><p>No decision that the history keeps matches the filters.</p><button onClick=${() => go('moves')}>Show all</button><//>`
    : html`<${Empty} title="Nothing has moved yet"><p>Decisions appear here the moment they change. This page can stay open.</p><//>`;
}
