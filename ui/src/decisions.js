// Placements and workloads: a table of which the server sorts, filters and sends the part in sight.
import { signal } from '@preact/signals';
import { useCallback, useEffect, useMemo } from 'preact/hooks';
import { query, request } from './api.js';
import { html } from './html.js';
import { narrow } from './media.js';
import { Empty, Failure, Names, Satisfaction, Since } from './parts.js';
import { change, decisionLink, go, route } from './route.js';
import { idOf, summarize, whatAsked } from './summary.js';
import { Table } from './table.js';
import { onEvents } from './watch.js';

const pageSize = 100;
// Pages out of sight are forgotten, so that scrolling through everything does not keep everything.
const keptPages = 30;

// Rows are the decisions of one query, as far as they were in sight.
class Rows {
  pages = new Map();
  total = signal(null);
  unsatisfied = signal(0);
  error = signal('');
  version = signal(0);
  range = [0, 0];
  loading = new Set();
  ended = new AbortController();

  constructor(filter) {
    this.filter = filter;
    this.stop = onEvents((events) => this.apply(events));
  }

  end() {
    this.stop();
    this.ended.abort();
    clearTimeout(this.timer);
  }

  at(index) { return this.pages.get(Math.floor(index / pageSize))?.[index % pageSize]; }

  // show loads what is in sight and absent.
  show = (first, last) => {
    this.range = [first, last];
    for (let page = Math.floor(first / pageSize); page * pageSize < Math.max(last, 1); page++) {
      if (!this.pages.has(page)) this.load(page);
    }
  };

  async load(page) {
    if (this.loading.has(page)) return;
    this.loading.add(page);
    try {
      const list = await request(`v1/decisions${query({ ...this.filter, offset: page * pageSize, limit: pageSize })}`, { signal: this.ended.signal });
      this.pages.delete(page); // to the end, as the one used last
      this.pages.set(page, list.items);
      for (const old of this.pages.keys()) {
        if (this.pages.size <= keptPages) break;
        this.pages.delete(old);
      }
      this.total.value = list.total;
      this.unsatisfied.value = list.unsatisfied;
      this.error.value = '';
      this.version.value++;
    } catch (error) {
      if (!this.ended.signal.aborted) this.error.value = error.message;
    } finally {
      this.loading.delete(page);
    }
  }

  // apply shows a change at once in the rows in sight, and asks soon for the order and the numbers that follow from it.
  apply(events) {
    const changed = new Map();
    for (const { type, object } of events) {
      if (object.kind === 'placement' || object.kind === 'workload') {
        changed.set(`${object.kind}/${object.metadata.namespace}/${object.metadata.name}`, type === 'put' ? object : null);
      }
    }
    if (changed.size === 0) return;
    const [first, last] = this.range;
    for (let index = first; index < last; index++) {
      const row = this.at(index);
      const object = row && changed.get(idOf(row));
      if (object) this.pages.get(Math.floor(index / pageSize))[index % pageSize] = summarize(object);
    }
    this.version.value++;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const seen = [Math.floor(this.range[0] / pageSize), Math.floor(Math.max(0, this.range[1] - 1) / pageSize)];
      for (const page of [...this.pages.keys()]) if (page < seen[0] || page > seen[1]) this.pages.delete(page);
      for (let page = seen[0]; page <= seen[1]; page++) this.load(page);
    }, 1000);
  }
}

// Decisions is the view.
export function Decisions() {
  const { search = '', kinds = '', satisfied = '', sort = 'name', cluster = '', namespace = '' } = route.value.params;
  const rows = useMemo(() => new Rows({ search, kinds, satisfied, sort, cluster, namespace }), [search, kinds, satisfied, sort, cluster, namespace]);
  useEffect(() => { rows.show(0, pageSize); return () => rows.end(); }, [rows]);
  rows.version.value; // shows changes
  const total = rows.total.value;
  const filtered = search || kinds || satisfied || cluster || namespace;
  const columns = useMemo(() => [
    { id: 'name', title: 'Name', width: 'minmax(0, 1.5fr)', sorts: 'name', cell: (row) => html`<div class="stack">
        <a tabindex="-1" href=${decisionLink(row)}><span class="muted">${row.namespace}/</span>${row.name}</a>
        ${narrow.value ? html`<small class="muted" title=${row.held}>${row.held ?? html`<${Names} names=${row.clusters} count=${row.cluster_count} />`}</small>` : html`<small class="muted">${row.kind} · ${whatAsked(row)}</small>`}</div>` },
    { id: 'satisfied', title: 'State', width: '9rem', sorts: 'satisfied', cell: (row) => html`<${Satisfaction} row=${row} />` },
    { id: 'clusters', title: 'Clusters', width: 'minmax(0, 1.3fr)', sorts: 'clusters', wide: true, cell: (row) => html`<${Names} names=${row.clusters} count=${row.cluster_count} />` },
    { id: 'why', title: 'Why', width: 'minmax(0, 1.6fr)', wide: true, cell: (row) => html`<span class="why" title=${row.held ?? row.message}>${row.held ?? row.message ?? ''}</span>` },
    { id: 'moved', title: 'Last move', width: '8.5rem', sorts: 'scheduled_at', wide: true, cell: (row) => html`<${Since} at=${row.scheduled_at} />` },
  ], []);
  const open = useCallback((row) => go('decision', [row.kind, row.namespace, row.name]), []);
  return html`<section class="view fill" aria-labelledby="title">
    <header class="bar">
      <h1 id="title">Placements and workloads</h1>
      <p class="muted figures" aria-live="polite">${total === null ? '' : html`${total.toLocaleString()} ${filtered ? 'match' : 'in all'}, ${rows.unsatisfied.value.toLocaleString()} not satisfied`}</p>
    </header>
    <div class="filters" role="search">
      <label class="grow">Name <input type="search" value=${search} placeholder="namespace/name" onInput=${(e) => change({ search: e.target.value.trim() })} /></label>
      <label>Kind <select value=${kinds} onChange=${(e) => change({ kinds: e.target.value })}><option value="">All</option><option value="placement">Placements</option><option value="workload">Workloads</option></select></label>
      <label>State <select value=${satisfied} onChange=${(e) => change({ satisfied: e.target.value })}><option value="">All</option><option value="False">Not satisfied</option><option value="True">Satisfied</option><option value="Unknown">Undecided</option></select></label>
      <label>Cluster <input type="search" value=${cluster} placeholder="any" onChange=${(e) => change({ cluster: e.target.value.trim() })} /></label>
      <label>Namespace <input type="search" value=${namespace} placeholder="any" onChange=${(e) => change({ namespace: e.target.value.trim() })} /></label>
    </div>
    ${rows.error.value && html`<${Failure} error=${rows.error.value} retry=${() => rows.show(...rows.range)} />`}
    <${Table} label="decisions" columns=${columns} total=${total ?? 0} row=${(i) => rows.at(i)} keyOf=${idOf} onRange=${rows.show} sort=${sort} onSort=${(s) => change({ sort: s })} onOpen=${open} rowHeight=${52}
      empty=${total === 0 && (filtered
        ? html`<${Empty} title="Nothing matches"><p>No placement or workload matches the filters.</p><button onClick=${() => change({ search: '', kinds: '', satisfied: '', cluster: '', namespace: '' })}>Show all</button><//>`
        : html`<${Empty} title="Nothing is placed yet">
            <p>A placement says what to look for; the server chooses clusters, and keeps the choice current. Apply one with Terraform:</p>
            <pre>${'resource "scheduler_placement" "web" {\n  name               = "web"\n  number_of_clusters = 1\n}'}</pre><//>`)} />
  </section>`;
}
