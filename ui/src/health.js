// Health: what the decisions rest on. The server and its store, where figures come from, how old they are, and webhooks.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { pages } from './api.js';
import { clusters, version } from './clusters.js';
import { compare } from './grouping.js';
import { html } from './html.js';
import { Failure, Pill, Since } from './parts.js';
import { formatQuantity } from './quantity.js';
import { change, formatRoute, route } from './route.js';
import { readServer, server } from './session.js';
import { Table } from './table.js';
import { now } from './time.js';
import { connection } from './watch.js';

const checks = signal([]);
const signals = signal(null);
const error = signal('');

// forgetHealth drops what one reader saw before another one looks.
export function forgetHealth() {
  checks.value = [];
  signals.value = null;
}

// parseChecks reads the lines of /readyz?verbose: "[+]store ok", "[!]objects warning: …".
export function parseChecks(text) {
  return text.split('\n').map((line) => /^\[([+!-])\](.+?) (?:ok|warning|error)(?:: (.*))?$/.exec(line)).filter(Boolean)
    .map(([, mark, name, detail]) => ({ name, tone: { '+': 'good', '!': 'warn', '-': 'bad' }[mark], detail: detail ?? '' }));
}

// signalOf is a row of a metric or a metrics provider.
export function signalOf({ kind, metadata, spec = {}, status = {} }) {
  const available = (status.conditions ?? []).find((c) => c.type === 'Available');
  return {
    kind, namespace: metadata.namespace ?? '', name: metadata.name, provider: spec.metrics_provider?.name ?? spec.type ?? '',
    ok: available ? available.status === 'True' : undefined, reason: available?.reason, message: available?.detail ?? available?.message ?? '',
    at: status.observed_at ?? available?.last_transition_at, value: status.value,
  };
}

async function refresh(aborted) {
  try {
    // Not ready is an answer too; it is told in the checks.
    const [text] = await Promise.all([
      // A server that is not ready says why, with a status that is not a success.
      fetch('readyz?verbose', { signal: aborted, cache: 'no-store', credentials: 'omit' }).then((r) => r.text()),
      readServer(),
    ]);
    checks.value = parseChecks(text);
    const rows = [];
    for (const collection of ['metrics-providers', 'metrics']) {
      const fields = collection === 'metrics' ? 'kind,metadata.name,metadata.namespace,spec.metrics_provider,status.value,status.observed_at,status.conditions' : 'kind,metadata.name,metadata.namespace,spec.type,status.conditions';
      for await (const page of pages(collection, { all: true, fields }, { signal: aborted })) for (const item of page.items) rows.push(signalOf(item));
    }
    const rank = (row) => (row.ok === false ? 0 : row.ok === undefined ? 1 : 2);
    signals.value = rows.sort((a, b) => rank(a) - rank(b) || (a.kind === b.kind ? 0 : a.kind === 'metrics_provider' ? -1 : 1) || compare(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`));
    error.value = '';
  } catch (e) {
    if (!aborted.aborted) error.value = e.message;
  }
}

// Health is the view.
export function Health() {
  const { only = '' } = route.value.params;
  useEffect(() => {
    const ended = new AbortController();
    refresh(ended.signal);
    const timer = setInterval(() => refresh(ended.signal), 20_000);
    return () => { ended.abort(); clearInterval(timer); };
  }, []);
  const info = server.value;
  const list = (signals.value ?? []).filter((s) => (only === 'failing' ? s.ok === false : true));
  const failing = (signals.value ?? []).filter((s) => s.ok === false).length;
  const columns = [
    { id: 'name', title: 'Signal', width: 'minmax(0, 1.4fr)', cell: (s) => html`<div class="stack"><span><span class="muted">${s.namespace ? `${s.namespace}/` : ''}</span>${s.name}</span><small class="muted">${s.kind.replace('_', ' ')}${s.provider ? ` · ${s.provider}` : ''}</small></div>` },
    { id: 'state', title: 'State', width: '9rem', cell: (s) => html`<${Pill} tone=${s.ok === undefined ? 'quiet' : s.ok ? 'good' : 'bad'}>${s.ok === undefined ? 'pending' : s.ok ? 'available' : 'failing'}<//>` },
    { id: 'value', title: 'Value', width: '7rem', wide: true, className: 'number', cell: (s) => (s.value === undefined ? '' : String(s.value)) },
    { id: 'age', title: 'Last change', width: '9rem', wide: true, cell: (s) => (s.at ? html`<${Since} at=${s.at} />` : '') },
    { id: 'why', title: 'Error', width: 'minmax(0, 2fr)', wide: true, cell: (s) => html`<span class="why" title=${s.message}>${s.ok === false ? `${s.reason ?? ''} ${s.message}` : ''}</span>` },
  ];
  return html`<section class="view" aria-labelledby="title">
    <header class="bar"><h1 id="title">Health</h1></header>
    ${error.value && html`<${Failure} error=${error.value} />`}
    <div class="cards">
      <${Server} info=${info} />
      <${Store} info=${info} />
      <${Clusters} />
      <${Webhooks} />
    </div>
    <header class="bar"><h2>Signals</h2><p class="muted figures" aria-live="polite">${signals.value === null ? 'loading…' : `${signals.value.length.toLocaleString()} in all, ${failing.toLocaleString()} failing`}</p></header>
    <div class="filters"><label>Show <select value=${only} onChange=${(e) => change({ only: e.target.value })}><option value="">all, failing ones first</option><option value="failing">failing ones</option></select></label></div>
    <${Table} label="signals" className="part-table" columns=${columns} total=${list.length} row=${(i) => list[i]} keyOf=${(s) => `${s.kind}/${s.namespace}/${s.name}`} rowHeight=${52}
      empty=${signals.value !== null && html`<p class="muted pad">${only ? 'No signal fails.' : 'No metrics are defined. Decisions rest on labels, taints and capacity alone.'}</p>`} />
  </section>`;
}

function Server({ info }) {
  if (!info) return html`<article class="card" aria-busy="true"><h2>Servers</h2></article>`;
  const members = info.servers ?? [{ id: 'self', name: info.name || 'this server', version: info.version, leader: info.leader }];
  return html`<article class="card"><h2>Servers</h2>
    <p><${Pill} tone=${connection.value === 'live' ? 'good' : 'bad'}>${connection.value === 'live' ? 'live updates' : 'no live updates'}<//></p>
    <ul class="plain">${members.map((m) => html`<li key=${m.id}>${m.name} <span class="muted">${m.version}</span> ${m.leader && html`<${Pill} tone="quiet">leader<//>`}</li>`)}</ul>
    <ul class="plain checks">${checks.value.map((c) => html`<li key=${c.name}><${Pill} tone=${c.tone}>${c.name}<//> ${c.detail}</li>`)}</ul></article>`;
}

function Store({ info }) {
  const store = info?.store;
  if (!store) return html`<article class="card" aria-busy="true"><h2>Store</h2></article>`;
  const used = store.quota_bytes > 0 ? store.in_use_bytes / store.quota_bytes : 0;
  return html`<article class="card"><h2>Store</h2>
    <div class="meter"><div class=${`level ${used >= 0.95 ? 'full' : used >= 0.8 ? 'high' : ''}`} style=${{ width: `${Math.max(1, Math.round(used * 100))}%` }}></div><span>${formatQuantity(store.in_use_bytes, 'storage')} of ${formatQuantity(store.quota_bytes, 'storage')} bytes</span></div>
    <dl class="facts"><dt>Mode</dt><dd>${store.mode}</dd><dt>Revision</dt><dd>${store.revision.toLocaleString()}</dd>
    ${store.format < store.newest_format && html`<dt>Format</dt><dd>${store.format} of ${store.newest_format}: the upgrade is not finished</dd>`}
    ${store.members?.map((m) => html`<dt key=${m.id}>Member</dt><dd>${m.name}${m.leader ? ', leads' : ''}${m.voter ? '' : ', no vote yet'}</dd>`)}</dl>
    ${info.damaged?.length > 0 && html`<p class="warning"><strong>${info.damaged.length} damaged in the store:</strong> ${info.damaged.slice(0, 5).map((d) => `${d.kind} ${d.namespace ? `${d.namespace}/` : ''}${d.name}`).join(', ')}</p>`}</article>`;
}

function Clusters() {
  version.value;
  const time = now.value;
  const down = [];
  const old = [];
  for (const cluster of clusters.values()) {
    if (cluster.state !== 'online') down.push(cluster);
    else if (Number.isFinite(cluster.heartbeat) && time - cluster.heartbeat > 600_000) old.push(cluster);
  }
  const some = (list) => list.slice(0, 5).map((c) => html`<li key=${c.name}><a href=${formatRoute('fleet', [], { cluster: c.name })}>${c.name}</a> <span class="muted">${c.state}</span> ${c.conditions[0]?.message ?? ''}</li>`);
  return html`<article class="card"><h2>Clusters</h2>
    <p>${down.length === 0 ? html`<${Pill} tone="good">all ${clusters.size.toLocaleString()} online<//>` : html`<${Pill} tone="bad">${down.length.toLocaleString()} not online<//>`} ${old.length > 0 && html`<${Pill} tone="warn">${old.length.toLocaleString()} with old figures<//>`}</p>
    <ul class="plain">${some([...down, ...old])}</ul>${down.length > 5 && html`<p><a href=${formatRoute('fleet', [], { group: 'state' })}>Show all</a></p>`}</article>`;
}

function Webhooks() {
  version.value;
  const spot = [...clusters.values()].filter((c) => c.spot);
  const failing = spot.filter((c) => c.conditions.some((k) => k.type === 'SpotReady'));
  return html`<article class="card"><h2>Spot webhooks</h2>
    ${spot.length === 0 ? html`<p class="muted">No cluster splits workloads between on-demand and spot nodes.</p>` : html`
    <p>${failing.length === 0 ? html`<${Pill} tone="good">all ${spot.length.toLocaleString()} ready<//>` : html`<${Pill} tone="bad">${failing.length} of ${spot.length} not ready<//>`}</p>
    <ul class="plain">${failing.slice(0, 5).map((c) => html`<li key=${c.name}>${c.name}: ${c.conditions.find((k) => k.type === 'SpotReady').message}</li>`)}</ul>`}</article>`;
}
