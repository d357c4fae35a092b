// One decision: every candidate, what kept it out, and what its score is made of.
import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { pathOf, request } from './api.js';
import { causeOf } from './cause.js';
import { toHCL } from './hcl.js';
import { readHistory } from './history.js';
import { html } from './html.js';
import { narrow } from './media.js';
import { Way } from './moves.js';
import { Copy, Empty, Failure, Pill, Satisfaction, Since } from './parts.js';
import { formatNumber } from './quantity.js';
import { change, formatRoute, route } from './route.js';
import { summarize, whatAsked } from './summary.js';
import { Table } from './table.js';
import { duration, now } from './time.js';
import { onEvents } from './watch.js';

// Decision is the view.
export function Decision() {
  const { parts: [kind, namespace, name], params } = route.value;
  if (kind !== 'placement' && kind !== 'workload') return html`<section class="view"><${Failure} error="This address names no placement or workload." /></section>`;
  return html`<${Present} of=${{ kind, namespace, name }} params=${params} />`;
}

function Present({ of, params }) {
  const { kind, namespace, name } = of;
  const decision = useDecision(kind, namespace, name);
  const { object, explanation, error, deleted } = decision.value;
  if (error) return html`<section class="view"><h1>${namespace}/${name}</h1><${Failure} error=${error} retry=${decision.read} /></section>`;
  if (!object || !explanation) return html`<section class="view" aria-busy="true"><h1>${namespace}/${name}</h1></section>`;
  const row = summarize(object);
  return html`<section class="view fill grows" aria-labelledby="title">
    <header class="bar">
      <p class="crumbs"><a href=${formatRoute('decisions')}>Placements and workloads</a></p>
      <h1 id="title"><span class="muted">${namespace}/</span>${name}</h1>
      <p class="figures"><${Satisfaction} row=${row} /> <span class="muted">${kind}, ${whatAsked(row)}, moved <${Since} at=${row.scheduled_at} /></span> ${causeOf(row) && html`<span>because ${causeOf(row)}</span>`}</p>
      <nav class="actions" aria-label="About this decision">
        <a class="button" href=${formatRoute('fleet', [], { for: `${kind}/${namespace}/${name}` })}>Show on the fleet</a>
        <a class="button" href=${formatRoute('what-if', [], { change: `${kind}/${namespace}/${name}` })}>What if it were different</a>
      </nav>
    </header>
    ${deleted && html`<p class="warning" role="status">This ${kind} has been deleted.</p>`}
    <${Story} row=${row} object=${object} x=${explanation} />
    <${Details} of=${of} x=${explanation} params=${params} object=${object} />
  </section>`;
}

// Details are the tabs.
function Details({ of, x, params, object }) {
  const tabs = { candidates: `Candidates (${x.candidates.length.toLocaleString()})`, history: 'History', spec: 'Terraform', json: 'JSON' };
  const tab = Object.hasOwn(tabs, params.tab ?? '') ? params.tab : 'candidates';
  return html`<div class="fill details"><div class="tabs" role="tablist" aria-label="Details" onKeyDown=${(event) => {
      const names = Object.keys(tabs);
      const step = { ArrowRight: 1, ArrowLeft: names.length - 1 }[event.key];
      if (!step) return;
      const next = names[(names.indexOf(tab) + step) % names.length];
      change({ tab: next });
      event.currentTarget.querySelector(`#tab-${next}`).focus();
    }}>
      ${Object.entries(tabs).map(([id, title]) => html`<button key=${id} role="tab" id=${`tab-${id}`} aria-selected=${String(tab === id)} aria-controls="details" tabindex=${tab === id ? 0 : -1} onClick=${() => change({ tab: id })}>${title}</button>`)}
    </div>
    <div class="fill" id="details" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      ${tab === 'candidates' && html`<${Matrix} x=${x} only=${params.only ?? ''} />`}
      ${tab === 'history' && html`<${History} of=${of} revision=${object.status?.decision_revision ?? 0} />`}
      ${tab === 'spec' && html`<${Source} text=${toHCL(object)} />`}
      ${tab === 'json' && html`<${Source} text=${JSON.stringify({ kind: object.kind, metadata: { name: of.name, namespace: of.namespace, labels: object.metadata.labels }, spec: object.spec }, null, 2)} />`}
    </div></div>`;
}

// History lists what moved before, and again when the decision has moved.
function History({ of, revision }) {
  const { kind, namespace, name } = of;
  const value = useMemo(() => signal({}), [kind, namespace, name]);
  const read = async (signal) => {
    try {
      value.value = { history: await readHistory({ kind, namespace, name }, { signal }), read: true };
    } catch (error) {
      if (!signal?.aborted) value.value = { error: error.message };
    }
  };
  useEffect(() => {
    const ended = new AbortController();
    read(ended.signal);
    return () => ended.abort();
  }, [value, revision]);
  const { history, error, read: done } = value.value;
  if (error) return html`<${Failure} error=${error} retry=${() => read()} />`;
  if (!done) return html`<p class="muted" aria-busy="true">Reading the history…</p>`;
  if (!history) return html`<${Empty} title="No history"><p>This server keeps no history of decisions.</p><//>`;
  const columns = [
    { id: 'at', title: 'When', width: '12rem', cell: (m) => html`<time datetime=${m.at}>${m.at.slice(0, 19).replace('T', ' ')}</time>` },
    { id: 'move', title: 'From and to', width: 'minmax(0, 1.4fr)', cell: (m) => html`<${Way} move=${m} />` },
    { id: 'why', title: 'Why', width: 'minmax(0, 2fr)', wide: true, cell: (m) => html`<span class="why" title=${m.why}>${m.why}</span>` },
  ];
  return html`<${Table} label="history" columns=${columns} total=${history.moves.length} row=${(i) => history.moves[i]} keyOf=${(m) => m.id} rowHeight=${44}
      empty=${html`<${Empty} title="Nothing is kept"><p>The history has no change of this decision.</p><//>`} />
    ${history.more && html`<p class="muted">The newest ${history.moves.length.toLocaleString()} changes.</p>`}
    ${history.gaps.length > 0 && html`<p class="warning" role="status">Changes may be missing: ${history.gaps[0].reason}.</p>`}`;
}

// useDecision reads an object with its explanation, again when the watch says that it changed.
function useDecision(kind, namespace, name) {
  const value = useMemo(() => signal({}), [kind, namespace, name]);
  useEffect(() => {
    const ended = new AbortController();
    const path = pathOf({ kind, namespace, name });
    value.read = async () => {
      try {
        const [object, explanation] = await Promise.all([request(path, { signal: ended.signal }), request(`${path}/explanation`, { signal: ended.signal })]);
        value.value = { object, explanation };
      } catch (error) {
        if (!ended.signal.aborted) value.value = { error: error.message };
      }
    };
    value.read();
    let timer;
    const stop = onEvents((events) => {
      const own = events.findLast(({ object: o }) => o.kind === kind && o.metadata.name === name && o.metadata.namespace === namespace);
      if (!own) return;
      if (own.type === 'delete') {
        value.value = { ...value.value, deleted: true };
        return;
      }
      // What is known at once is shown at once; the reasons follow.
      if (value.value.object) value.value = { ...value.value, object: own.object, deleted: false };
      timer ??= setTimeout(() => { timer = undefined; value.read(); }, 50);
    });
    return () => { stop(); clearTimeout(timer); ended.abort(); };
  }, [kind, namespace, name]);
  return value;
}

const keptBecause = {
  reschedule_after: 'it is younger than reschedule_after',
  migration: 'migration is false, and it still fits',
  misconfigured: 'the object refers to something that does not exist',
  unread_metric: 'a metric of a chosen cluster cannot be read',
  move_window: 'a move window holds it',
  brake: 'too many clusters failed at once, so failover is held',
  balance: 'another cluster is better only because of what other placements decided',
};

// Story says in sentences what holds the decision, and what would move it.
function Story({ row, object, x }) {
  const held = (object.status?.conditions ?? []).filter((c) => ['Faulted', 'MoveHeld', 'FailoverHeld', 'Misconfigured'].includes(c.type) && c.status === 'True');
  const until = x.next_at ? Date.parse(x.next_at) - now.value : 0;
  return html`<div class="story">
    <p class="lead">${x.summary}</p>
    <ul>
      ${row.satisfied === 'False' && row.message && html`<li>Not satisfied: ${row.message}</li>`}
      ${held.map((c) => html`<li key=${c.type}>Held: ${c.message ?? c.reason}</li>`)}
      ${x.kept && html`<li>The decision is kept although a new one might differ: ${keptBecause[x.kept] ?? x.kept}.</li>`}
      ${x.margin && html`<li>It moves from <strong>${x.margin.from}</strong> to <strong>${x.margin.to}</strong> ${x.margin.margin < 0 ? html`as soon as nothing holds it: ${x.margin.to} is better by ${formatNumber(-x.margin.margin)}.` : html`if the score of ${x.margin.to} rises by more than <strong>${formatNumber(x.margin.margin)}</strong>.`}</li>`}
      ${x.nearest_miss && html`<li>Nearest miss: without <strong>${x.nearest_miss.filter}${x.nearest_miss.on && x.nearest_miss.on !== x.nearest_miss.filter ? ` ${x.nearest_miss.on}` : ''}</strong>, ${x.nearest_miss.count === 1 ? 'one more cluster' : `${x.nearest_miss.count.toLocaleString()} more clusters`} would fit.</li>`}
      ${x.policy && html`<li>Policy ${x.policy}${x.policy_reason ? `: ${x.policy_reason}` : ''}</li>`}
      ${x.affinities?.map((a) => html`<li key=${a.affinity_name}>Affinity group ${a.affinity_name}: ${a.result.replaceAll('_', ' ')}${a.message ? `. ${a.message}` : ''}</li>`)}
      ${until > 0 && html`<li>Time alone may change it in ${duration(until)}.</li>`}
    </ul>
  </div>`;
}

// partsOf returns the columns for the parts of scores: one for each name, in the order of the first candidates that have
// it. Where every cluster has metrics of its own, as many as there are parts, and the cells have the names.
export function partsOf(candidates) {
  const names = new Set();
  let longest = 0;
  for (const { scores = [] } of candidates) {
    longest = Math.max(longest, scores.length);
    if (names.size <= 100) for (const part of scores) names.add(part.name);
  }
  const own = names.size > 2 * longest;
  const columns = own
    ? Array.from({ length: Math.min(longest, 8) }, (_, i) => ({ id: i, title: longest > 1 ? `part ${i + 1}` : 'part', named: true, of: (c) => c.scores?.[i] }))
    : [...names].slice(0, 12).map((name) => ({ id: name, title: name, named: false, of: (c) => c.scores?.find((p) => p.name === name) }));
  // What a part adds at most gives the bars of a column one scale.
  for (const column of columns) {
    column.most = candidates.reduce((most, c) => Math.max(most, Math.abs(column.of(c)?.share ?? 0)), 1e-12);
  }
  return columns;
}

// standing orders candidates: chosen, those that fit, rejected.
export const standing = (c) => (c.selected ? 0 : c.filter ? 2 : 1);

function Matrix({ x, only }) {
  const view = useMemo(() => {
    const filters = (x.rejections ?? []).reduce((list, r) => (list.includes(r.filter) ? list : [...list, r.filter]), []);
    return { filters, parts: partsOf(x.candidates), workload: x.candidates.some((c) => c.replicas !== undefined), scored: x.candidates.some((c) => c.score !== undefined) };
  }, [x]);
  const rows = useMemo(() => x.candidates
    .filter((c) => (only === '' ? true : only === 'fit' ? !c.filter : only === 'chosen' ? c.selected : c.filter === only))
    .sort((a, b) => standing(a) - standing(b) || (a.rank ?? Infinity) - (b.rank ?? Infinity)), [x, only]);
  const columns = useMemo(() => [
    { id: 'cluster', title: 'Candidate', width: 'minmax(9rem, 1.3fr)', cell: (c) => html`<div class="stack"><a tabindex="-1" href=${formatRoute('fleet', [], { cluster: c.cluster })}>${c.cluster}</a>${narrow.value && html`<small class="muted why">${reason(c)}</small>`}</div>` },
    { id: 'decision', title: 'Decision', width: '9rem', cell: (c) => html`<${Verdict} c=${c} />` },
    ...(view.workload ? [{ id: 'replicas', title: 'Replicas', width: '6.5rem', className: 'number', wide: true, cell: (c) => html`${c.replicas ?? ''}${c.available !== undefined ? html` <span class="muted">of ${c.available}</span>` : ''}` }] : []),
    ...view.filters.map((filter) => ({ id: `filter ${filter}`, title: filter.replaceAll('_', ' '), width: 'minmax(3.6rem, 6rem)', wide: true, className: 'center', cell: (c) => html`<${Check} c=${c} filter=${filter} />` })),
    ...(view.scored ? [{ id: 'score', title: 'Score', width: '5rem', className: 'number', wide: true, cell: (c) => html`<strong>${formatNumber(c.score)}</strong>` }] : []),
    ...view.parts.map((column) => ({ id: `part ${column.id}`, title: column.title, width: 'minmax(5rem, 10rem)', wide: true, cell: (c) => html`<${Part} part=${column.of(c)} most=${column.most} named=${column.named} />` })),
    { id: 'why', title: 'Why', width: 'minmax(10rem, 2fr)', wide: true, cell: (c) => html`<span class="why" title=${reason(c)}>${reason(c)}</span>` },
  ], [view]);
  return html`<div class="fill">
    <div class="filters compact">
      <label>Show <select value=${only} onChange=${(e) => change({ only: e.target.value })}>
        <option value="">all candidates</option><option value="chosen">the chosen ones</option><option value="fit">those that fit (${x.feasible.toLocaleString()})</option>
        ${view.filters.map((f) => html`<option key=${f} value=${f}>rejected by ${f.replaceAll('_', ' ')}</option>`)}
      </select></label>
    </div>
    <${Table} label="candidates" className="matrix" columns=${columns} total=${rows.length} row=${(i) => ({ ...rows[i], className: rows[i].selected ? 'chosen' : '' })} keyOf=${(c) => c.cluster}
      empty=${html`<p class="muted pad">There is no such candidate.</p>`} />
  </div>`;
}

const reason = (c) => c.reason ?? (c.current && !c.selected ? 'was chosen before' : '');

function Verdict({ c }) {
  if (c.selected) return html`<${Pill} tone="good">${c.rank ? `chosen, rank ${c.rank}` : 'chosen'}<//>`;
  if (c.filter) return html`<${Pill} tone="bad">rejected<//>`;
  return html`<${Pill} tone="quiet">${c.rank ? `rank ${c.rank}` : 'passed over'}<//>`;
}

// Check is one cell of the matrix: a candidate that fits passed every filter; of the others, the one that rejected it is
// known.
function Check({ c, filter }) {
  if (!c.filter) return html`<span class="pass" aria-label="passed">✓</span>`;
  return c.filter === filter ? html`<span class="fail" aria-label="rejected" title=${c.reason}>✕</span>` : html`<span class="muted" aria-label="not decisive">·</span>`;
}

function Part({ part, most, named }) {
  if (!part) return '';
  if (part.reason) return html`<span class="muted why" title=${part.reason}>${part.reason}</span>`;
  const title = `${part.raw === undefined ? '' : `observed ${formatNumber(part.raw)}, `}value ${formatNumber(part.value)} × weight ${formatNumber(part.weight)}`;
  return html`<div class="part" title=${title}><div class=${`level ${part.share < 0 ? 'negative' : ''}`} style=${{ width: `${Math.round((Math.abs(part.share) / most) * 100)}%` }}></div><span>${formatNumber(part.share)}${named ? html` <small>${part.name}</small>` : ''}</span></div>`;
}

function Source({ text }) {
  const pre = useRef(null);
  return html`<div class="source"><${Copy} text=${text} of=${pre} /><pre ref=${pre} tabindex="0" aria-label="Source">${text}</pre></div>`;
}
