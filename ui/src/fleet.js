// The fleet: every cluster a tile. A chosen placement lights up its clusters, and says why not the others.
import { signal } from '@preact/signals';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { query, request, pathOf } from './api.js';
import { clusters, loaded, sets, version } from './clusters.js';
import { compare, group, groupings, marksOf, resourcesOf, untitled } from './grouping.js';
import { html } from './html.js';
import { dark } from './media.js';
import { Empty, Failure, Pill, Since } from './parts.js';
import { Picker } from './picker.js';
import { formatQuantity } from './quantity.js';
import { change, decisionLink, formatRoute, route } from './route.js';
import { Table } from './table.js';
import { at, boxOf, draw, hit, layout, neighbor, sizeFor } from './tiles.js';
import { now, serverNow } from './time.js';
import { onEvents } from './watch.js';

// findDecisions finds placements and workloads by name.
export async function findDecisions(search) {
  const { items } = await request(`v1/decisions${query({ search, limit: 8 })}`);
  return items.map((row) => ({ id: `${row.kind}/${row.namespace}/${row.name}`, text: `${row.namespace}/${row.name}`, more: row.kind, row }));
}

// Fleet is the view.
export function Fleet() {
  const { params } = route.value;
  version.value; // shows changes
  const list = useMemo(() => [...clusters.values()].filter((c) => !params.find || matches(c, params.find)), [version.value, params.find]);
  const resources = useMemo(() => resourcesOf(clusters.values()), [version.value]);
  const by = params.group ?? (list.some((c) => c.region) ? 'region' : 'none');
  const resource = params.resource ?? resources[0] ?? 'cpu';
  const groups = useMemo(() => group(list, by, sets).map((g) => ({ ...g, members: g.members.toSorted(byName) })), [list, by]);
  const explanation = useExplanation(params.for);
  const chosen = params.cluster ? clusters.get(params.cluster) : undefined;
  const options = useMemo(() => groupings(clusters.values()), [version.value]);
  const down = list.filter((c) => c.state !== 'online').length;

  if (loaded.value && clusters.size === 0) {
    return html`<section class="view"><h1>Fleet</h1><${Empty} title="There are no clusters yet">
      <p>Describe a cluster with Terraform, and it appears here:</p>
      <pre>${'resource "scheduler_cluster" "berlin" {\n  name   = "berlin"\n  region = "eu"\n  labels = { location = "DE" }\n}'}</pre>
      <p>If you expected some, your token may be for a namespace that owns none.</p><//></section>`;
  }
  return html`<section class="view fill" aria-labelledby="title">
    <header class="bar">
      <h1 id="title">Fleet</h1>
      <p class="muted figures" aria-live="polite">${list.length.toLocaleString()} ${list.length === 1 ? 'cluster' : 'clusters'}${down > 0 ? html`, <a href=${formatRoute('fleet', [], { ...params, group: 'state' })}>${down.toLocaleString()} not online</a>` : ''}${loaded.value ? '' : ', loading…'}</p>
    </header>
    <div class="filters">
      <label>Group by <select value=${by} onChange=${(e) => change({ group: e.target.value })}>${options.map((o) => html`<option key=${o} value=${o}>${{ region: 'region', provider: 'provider', set: 'set', state: 'state', none: 'nothing' }[o] ?? o.replace('label:', 'label ')}</option>`)}</select></label>
      <label>Fill <select value=${resource} onChange=${(e) => change({ resource: e.target.value })}>${(resources.length ? resources : ['cpu']).map((r) => html`<option key=${r} value=${r}>${r}</option>`)}</select></label>
      <label>Find <input type="search" value=${params.find ?? ''} placeholder="name, label or region" onInput=${(e) => change({ find: e.target.value.trim() })} /></label>
      <${Picker} label="Show decision of" placeholder="placement or workload" value=${params.for ? params.for.split('/').slice(1).join('/') : ''} find=${findDecisions} pick=${(option) => change({ for: option?.id ?? '' })} />
      <label class="choice">As <select value=${params.as ?? 'tiles'} onChange=${(e) => change({ as: e.target.value === 'tiles' ? '' : e.target.value })}><option value="tiles">tiles</option><option value="table">table</option></select></label>
    </div>
    ${explanation.value.error && html`<${Failure} error=${explanation.value.error} />`}
    ${explanation.value.data && html`<${Lit} decision=${params.for} data=${explanation.value.data} />`}
    <div class=${`split ${chosen ? 'open' : ''}`}>
      ${params.as === 'table'
        ? html`<${ClusterTable} list=${list} resource=${resource} reasons=${explanation.value.byCluster} />`
        : html`<${Tiles} groups=${groups} by=${by} resource=${resource} reasons=${explanation.value.byCluster} active=${params.cluster} />`}
      ${chosen && html`<${Cluster} cluster=${chosen} candidate=${explanation.value.byCluster?.get(chosen.name)} />`}
    </div>
    ${params.as !== 'table' && html`<${Legend} />`}
  </section>`;
}

function matches(cluster, text) {
  const wanted = text.toLowerCase();
  return cluster.name.includes(wanted) || cluster.region.toLowerCase().includes(wanted) || cluster.description.toLowerCase().includes(wanted)
    || Object.entries(cluster.labels).some(([key, value]) => `${key}=${value}`.toLowerCase().includes(wanted));
}

// useExplanation reads why a decision is as it is, again when it changes.
function useExplanation(id) {
  const value = useMemo(() => signal({}), [id]);
  useEffect(() => {
    if (!id) return undefined;
    const [kind, namespace, name] = id.split('/');
    const ended = new AbortController();
    const read = async () => {
      try {
        const data = await request(`${pathOf({ kind, namespace, name })}/explanation`, { signal: ended.signal });
        value.value = { data, byCluster: new Map(data.candidates.map((c) => [c.cluster, c])) };
      } catch (error) {
        if (!ended.signal.aborted) value.value = { error: error.message };
      }
    };
    let timer;
    read();
    const stop = onEvents((events) => {
      if (events.some(({ object }) => object.kind === kind && object.metadata.name === name && object.metadata.namespace === namespace)) {
        timer ??= setTimeout(() => { timer = undefined; read(); }, 50);
      }
    });
    return () => { stop(); clearTimeout(timer); ended.abort(); };
  }, [id]);
  return value;
}

// Lit says what the tiles say: the decision, and what keeps the other clusters out.
function Lit({ decision, data }) {
  const [kind, namespace, name] = decision.split('/');
  return html`<div class="note" role="status">
    <p><a href=${decisionLink({ kind, namespace, name })}>${namespace}/${name}</a>: ${data.summary}</p>
    ${data.rejections?.length > 0 && html`<ul class="chips">${data.rejections.slice(0, 6).map((r) => html`<li key=${r.filter + r.on}><strong>${r.count.toLocaleString()}</strong> ${r.filter}${r.on ? `: ${r.on}` : ''}</li>`)}</ul>`}
    <button class="quiet" onClick=${() => change({ for: '' })}>Show all alike</button>
  </div>`;
}

function Legend() {
  return html`<ul class="legend muted" aria-label="Legend">
    <li><i class="key fill"></i> used</li><li><i class="key high"></i> over 80 %</li><li><i class="key full"></i> over 95 %</li><li><i class="key down"></i> not online</li>
    <li><i class="key taint"></i> tainted</li><li><i class="key spot"></i> spot</li><li><i class="key paused"></i> paused</li><li><i class="key old"></i> old figures</li>
  </ul>`;
}

// describe says a tile in words.
function describe(cluster, resource, candidate) {
  const parts = [cluster.name, cluster.state];
  const r = cluster.resources[resource];
  if (r && Number.isFinite(r.used)) parts.push(`${Math.round(r.used * 100)} % of ${resource} used, ${formatQuantity(r.free, resource)} free`);
  if (cluster.paused) parts.push('paused');
  if (cluster.taints.length > 0) parts.push(`taints: ${cluster.taints.map((t) => t.key).join(', ')}`);
  if (cluster.spot) parts.push('spot');
  if (candidate) parts.push(reasonOf(candidate));
  return parts.join(', ');
}

// reasonOf says why a candidate is or is not part of a decision.
export function reasonOf(candidate) {
  if (candidate.selected) return candidate.replicas === undefined ? 'chosen' : `chosen: ${candidate.replicas} replicas`;
  return candidate.reason || (candidate.rank ? `fits, rank ${candidate.rank}` : 'fits, not chosen');
}

function colorsOf(element) {
  const style = getComputedStyle(element);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const colors = Object.fromEntries(['ink', 'muted', 'line', 'surface', 'tile', 'fill', 'high', 'full', 'bad', 'taint', 'spot', 'accent', 'focus'].map((name) => [name, color(name)]));
  const family = style.fontFamily;
  return { colors, fonts: { heading: `600 14px ${family}`, name: `600 14px ${family}`, small: `12.5px ${family}` } };
}

function Tiles({ groups, by, resource, reasons, active }) {
  const scroller = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [index, setIndex] = useState(-1);
  const [tip, setTip] = useState(null);
  const count = groups.reduce((sum, g) => sum + g.members.length, 0);
  const plan = useMemo(() => layout(groups, Math.max(60, width - 28), sizeFor(count)), [groups, width, count]);
  const theme = useMemo(() => (scroller.current ? colorsOf(scroller.current) : null), [dark.value, width]);

  const paint = useCallback(() => {
    const element = canvas.current;
    const view = scroller.current;
    if (!element || !view || !theme) return;
    const ratio = devicePixelRatio || 1;
    const [w, h] = [view.clientWidth, view.clientHeight];
    if (element.width !== Math.round(w * ratio) || element.height !== Math.round(h * ratio)) {
      element.width = Math.round(w * ratio);
      element.height = Math.round(h * ratio);
      element.style.width = `${w}px`;
      element.style.height = `${h}px`;
    }
    const context = element.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 14 * ratio, 0);
    const time = serverNow();
    draw(context, plan, {
      scroll: view.scrollTop, width: w, height: h,
      style: {
        ...theme, resource, untitled: untitled(by), active: index,
        marks: (cluster) => marksOf(cluster, time),
        lit: reasons ? (cluster) => reasons.get(cluster.name)?.selected === true : undefined,
        summary: (members) => summaryOf(members, resource),
      },
    });
  }, [plan, theme, resource, reasons, index, by]);

  useLayoutEffect(() => {
    const view = scroller.current;
    const observer = new ResizeObserver(() => { setWidth(view.clientWidth); });
    observer.observe(view);
    setWidth(view.clientWidth);
    return () => observer.disconnect();
  }, []);
  // One frame paints everything that changed before it.
  useEffect(() => {
    let frame = requestAnimationFrame(paint);
    const again = () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(paint); setTip(null); };
    const view = scroller.current;
    view.addEventListener('scroll', again, { passive: true });
    const observer = new ResizeObserver(again);
    observer.observe(view);
    return () => { cancelAnimationFrame(frame); view.removeEventListener('scroll', again); observer.disconnect(); };
  }, [paint]);

  const pointed = (event) => {
    const box = scroller.current.getBoundingClientRect();
    return hit(plan, event.clientX - box.left - 14, event.clientY - box.top + scroller.current.scrollTop);
  };
  const select = (i) => { const cluster = at(plan, i); change({ cluster: cluster && cluster.name !== active ? cluster.name : '' }); };
  const onKeyDown = (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      select(index);
    } else if (event.key === 'Escape') {
      change({ cluster: '' });
    } else if (['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].includes(event.key) && plan.count > 0) {
      event.preventDefault();
      const next = index < 0 ? 0 : neighbor(plan, index, event.key);
      setIndex(next);
      const box = boxOf(plan, next);
      const view = scroller.current;
      if (box.y < view.scrollTop + 34) view.scrollTop = box.y - 40;
      else if (box.y + box.height > view.scrollTop + view.clientHeight) view.scrollTop = box.y + box.height - view.clientHeight + 8;
    }
  };
  const current = at(plan, index);
  return html`<div class="tiles" ref=${scroller} tabindex="0" role="listbox" aria-label="Clusters" aria-activedescendant=${current ? 'tile' : undefined}
      onKeyDown=${onKeyDown} onFocus=${() => { if (index < 0) setIndex(0); }} onBlur=${() => setIndex(-1)}
      onMouseDown=${(event) => {
        const i = pointed(event);
        if (i < 0) return;
        event.preventDefault();
        scroller.current.focus({ preventScroll: true });
        setIndex(i);
        select(i);
      }}
      onMouseMove=${(event) => { const i = pointed(event); const cluster = at(plan, i); setTip(cluster ? { cluster, x: event.clientX, y: event.clientY } : null); }} onMouseLeave=${() => setTip(null)}>
    ${count === 0 && loaded.value && html`<p class="muted pad" aria-hidden="true">No cluster matches.</p>`}
    <div class="whole" style=${{ height: `${plan.height}px` }}><canvas ref=${canvas} aria-hidden="true"></canvas></div>
    <div id="tile" role="option" aria-selected=${String(current?.name === active)} aria-posinset=${current ? index + 1 : undefined} aria-setsize=${current ? plan.count : undefined} class="unseen">${current ? describe(current, resource, reasons?.get(current.name)) : count === 0 ? 'No cluster matches' : 'Arrow keys move through the clusters'}</div>
    ${tip && html`<div class="tip" role="presentation" style=${{ left: `${Math.min(tip.x + 14, innerWidth - 300)}px`, top: `${Math.min(tip.y + 14, innerHeight - 90)}px` }}><strong>${tip.cluster.name}</strong><br />${describe(tip.cluster, resource, reasons?.get(tip.cluster.name)).slice(tip.cluster.name.length + 2)}</div>`}
  </div>`;
}

// summaryOf says how full a group is.
function summaryOf(members, resource) {
  let total = 0;
  let free = 0;
  let known = 0;
  for (const { resources } of members) {
    const r = resources[resource];
    if (r && Number.isFinite(r.free) && Number.isFinite(r.total)) {
      total += r.total;
      free += r.free;
      known++;
    }
  }
  const count = `${members.length.toLocaleString()}`;
  return known > 0 && total > 0 ? `${count} · ${Math.round((1 - free / total) * 100)} % used, ${formatQuantity(free, resource)} ${resource} free` : count;
}

const byName = (a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0);

const sorters = {
  name: byName,
  state: (a, b) => compare(a.state, b.state),
  region: (a, b) => compare(a.region, b.region),
  used: (a, b, resource) => (a.resources[resource]?.used || 0) - (b.resources[resource]?.used || 0),
};

function ClusterTable({ list, resource, reasons }) {
  const { sort = 'name' } = route.value.params;
  const rows = useMemo(() => {
    const by = sorters[sort.replace('-', '')] ?? sorters.name;
    const sorted = list.toSorted((a, b) => by(a, b, resource) || byName(a, b));
    return sort.startsWith('-') ? sorted.reverse() : sorted;
  }, [list, sort, resource]);
  const columns = [
    { id: 'name', title: 'Cluster', sorts: 'name', width: 'minmax(0, 1.4fr)', cell: (c) => html`<div class="stack"><span>${c.name}</span><small class="muted">${[c.region, c.provider].filter(Boolean).join(' · ')}</small></div>` },
    { id: 'state', title: 'State', sorts: 'state', width: '8rem', cell: (c) => html`<${Pill} tone=${c.state === 'online' ? (c.paused ? 'warn' : 'good') : 'bad'}>${c.paused ? 'paused' : c.state}<//>` },
    { id: 'used', title: `${resource} used`, sorts: 'used', width: 'minmax(0, 1fr)', wide: true, cell: (c) => html`<${Bar} resource=${c.resources[resource]} name=${resource} />` },
    { id: 'taints', title: 'Taints', width: 'minmax(0, 1fr)', wide: true, cell: (c) => html`<span class="why">${c.taints.map((t) => t.key).join(', ')}</span>` },
    ...(reasons ? [{ id: 'why', title: 'Decision', width: 'minmax(0, 1.6fr)', cell: (c) => html`<span class="why">${reasons.has(c.name) ? reasonOf(reasons.get(c.name)) : ''}</span>` }] : []),
  ];
  return html`<${Table} label="clusters" columns=${columns} total=${rows.length} row=${(i) => rows[i]} keyOf=${(c) => c.name} sort=${sort} onSort=${(s) => change({ sort: s })} onOpen=${(c) => change({ cluster: c.name })} rowHeight=${50} />`;
}

function Bar({ resource, name }) {
  if (!resource || !Number.isFinite(resource.used)) return html`<span class="muted">no figures</span>`;
  const tone = resource.used >= 0.95 ? 'full' : resource.used >= 0.8 ? 'high' : '';
  return html`<div class="meter"><div class=${`level ${tone}`} style=${{ width: `${Math.round(resource.used * 100)}%` }}></div><span>${Math.round(resource.used * 100)} %, ${formatQuantity(resource.free, name)} free</span></div>`;
}

// Cluster is what is known about one cluster.
function Cluster({ cluster, candidate }) {
  const heading = useRef(null);
  now.value; // shows ages
  return html`<aside class="panel" aria-label=${`Cluster ${cluster.name}`}>
    <header><h2 ref=${heading} tabindex="-1">${cluster.name}</h2><button class="quiet" aria-label="Close" onClick=${() => change({ cluster: '' })}>✕</button></header>
    <p><${Pill} tone=${cluster.state === 'online' ? 'good' : 'bad'}>${cluster.state}<//> ${cluster.paused && html`<${Pill} tone="warn">paused<//>`} ${cluster.spot && html`<${Pill} tone="quiet">spot<//>`}</p>
    ${cluster.description && html`<p>${cluster.description}</p>`}
    ${candidate && html`<p class="note">${reasonOf(candidate)}</p>`}
    ${cluster.conditions.map((c) => html`<p class="warning" key=${c.type}><strong>${c.type} is ${c.status}.</strong> ${c.message ?? c.reason ?? ''}</p>`)}
    ${Object.keys(cluster.resources).length > 0 && html`<h3>Room</h3><dl class="bars">${Object.entries(cluster.resources).map(([name, r]) => html`<dt key=${name}>${name}</dt><dd><${Bar} resource=${r} name=${name} /></dd>`)}</dl>`}
    <dl class="facts">
      ${cluster.region && html`<dt>Region</dt><dd>${cluster.region}${cluster.zones.length ? ` (${cluster.zones.join(', ')})` : ''}</dd>`}
      ${cluster.provider && html`<dt>Provider</dt><dd>${cluster.provider}</dd>`}
      ${cluster.owners.length > 0 && html`<dt>Owner</dt><dd>${cluster.owners.join(', ')}</dd>`}
      ${Number.isFinite(cluster.seen) && html`<dt>Figures</dt><dd><${Since} at=${cluster.seen} /></dd>`}
      ${Number.isFinite(cluster.heartbeat) && html`<dt>Heartbeat</dt><dd><${Since} at=${cluster.heartbeat} /></dd>`}
    </dl>
    ${cluster.taints.length > 0 && html`<h3>Taints</h3><ul class="plain">${cluster.taints.map((t) => html`<li key=${t.key + t.effect}><code>${t.key}${t.value ? `=${t.value}` : ''}:${t.effect}</code></li>`)}</ul>`}
    ${Object.keys(cluster.labels).length > 0 && html`<h3>Labels</h3><ul class="plain">${Object.entries(cluster.labels).map(([key, value]) => html`<li key=${key}><code>${key}=${value}</code></li>`)}</ul>`}
    <nav class="actions" aria-label="About this cluster">
      <a class="button" href=${formatRoute('decisions', [], { cluster: cluster.name })}>What runs here</a>
      <a class="button" href=${formatRoute('what-if', [], { drain: cluster.name })}>What if it is drained</a>
      <a class="button" href=${formatRoute('what-if', [], { without: cluster.name })}>What if it is lost</a>
    </nav>
  </aside>`;
}
