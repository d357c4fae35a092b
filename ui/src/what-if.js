// What if: changes that nobody makes, and the moves that would follow from them. The changes are the address of the page,
// so they can be shared; the address has no token.
import { signal } from '@preact/signals';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { pathOf, query, request } from './api.js';
import { clusters, version } from './clusters.js';
import { compare } from './grouping.js';
import { html } from './html.js';
import { Copy, Empty, Failure } from './parts.js';
import { Picker } from './picker.js';
import { findDecisions } from './fleet.js';
import { change, decisionLink, route } from './route.js';
import { Table } from './table.js';

const listOf = (text) => (text ? text.split(',') : []);

// parseChanges reads the changes from the parameters of the address.
export function parseChanges(params) {
  return {
    without: listOf(params.without),
    drain: listOf(params.drain),
    cordon: listOf(params.cordon),
    taint: listOf(params.taint).map((text) => {
      const [cluster, rest = ''] = cut(text, '=');
      return { cluster, ...parseTaint(rest) };
    }),
    metric: listOf(params.metric).map((text) => {
      const [path, value] = cut(text, '=');
      const at = path.indexOf('/');
      return { namespace: at < 0 ? '' : path.slice(0, at), name: path.slice(at + 1), value: Number(value) };
    }),
    change: params.change ?? '',
    spec: params.spec ?? '',
  };
}

function cut(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

// parseTaint reads "key=value:effect".
export function parseTaint(text) {
  const at = text.lastIndexOf(':');
  const [key, value] = cut(at < 0 ? text : text.slice(0, at), '=');
  return { key, value, effect: at < 0 ? '' : text.slice(at + 1) };
}

export const effects = ['NoSelect', 'NoSelectIfNew', 'PreferNoSelect'];

// The taint that schedulerctl drain adds.
const drained = { key: 'schedulerctl/drain', effect: 'NoSelect' };

// simulationOf makes the request for POST /v1/simulations. read(key) returns an object as the API shows it.
export async function simulationOf(changes, read) {
  const objects = new Map();
  const cluster = async (name) => {
    if (!objects.has(name)) {
      const object = await read({ kind: 'cluster', name });
      objects.set(name, { ...object, spec: { ...object.spec, taints: [...(object.spec?.taints ?? [])] } });
    }
    return objects.get(name).spec;
  };
  const addTaint = (spec, taint) => { spec.taints = [...spec.taints.filter((t) => t.key !== taint.key || t.effect !== taint.effect), taint]; };
  for (const name of changes.cordon) (await cluster(name)).paused = true;
  for (const name of changes.drain) {
    const spec = await cluster(name);
    spec.paused = true;
    addTaint(spec, drained);
  }
  for (const { cluster: name, key, value, effect } of changes.taint) addTaint(await cluster(name), value ? { key, value, effect } : { key, effect });
  for (const { namespace, name, value } of changes.metric) {
    const metric = await read({ kind: 'metric', namespace, name });
    // A bare value is an observation like any other; the reasons of the last reading do not hold for it.
    objects.set(`metric ${namespace}/${name}`, { ...metric, status: { value } });
  }
  if (changes.spec) {
    const own = JSON.parse(changes.spec);
    if (changes.change) {
      const [kind, namespace, name] = changes.change.split('/');
      const object = await read({ kind, namespace, name });
      objects.set(changes.change, { ...object, spec: own });
    } else {
      objects.set('new', own);
    }
  }
  return { objects: [...objects.values()], delete: changes.without.map((name) => ({ kind: 'cluster', name })) };
}

const isEmpty = (c) => !c.without.length && !c.drain.length && !c.cordon.length && !c.taint.length && !c.metric.length && !c.spec;

// WhatIf is the view.
export function WhatIf() {
  const { params } = route.value;
  const changes = useMemo(() => parseChanges(params), [params]);
  const outcome = useSimulation(changes);
  const list = (key, text) => [...listOf(params[key]).filter((t) => t !== text), text].join(',');
  const drop = (key, text) => change({ [key]: listOf(params[key]).filter((t) => t !== text).join(',') });
  const chips = [
    ...listOf(params.without).map((t) => ['without', t, `${t} is gone`]),
    ...listOf(params.drain).map((t) => ['drain', t, `${t} is drained`]),
    ...listOf(params.cordon).map((t) => ['cordon', t, `${t} is cordoned`]),
    ...listOf(params.taint).map((t) => ['taint', t, `${cut(t, '=')[0]} has the taint ${cut(t, '=')[1]}`]),
    ...listOf(params.metric).map((t) => ['metric', t, `metric ${cut(t, '=')[0]} is ${cut(t, '=')[1]}`]),
  ];
  return html`<section class="view fill" aria-labelledby="title">
    <header class="bar"><h1 id="title">What if</h1><p class="muted figures">Nothing here changes anything.</p>
      <nav class="actions"><${Copy} text=${location.href} label="Copy link" />${!isEmpty(changes) && html`<button class="quiet" onClick=${() => change(Object.fromEntries(['without', 'drain', 'cordon', 'taint', 'metric', 'change', 'spec'].map((k) => [k, ''])))}>Start over</button>`}</nav></header>
    <div class="forms">
      <${ClusterChange} add=${(key, text) => change({ [key]: list(key, text) })} />
      <${MetricChange} add=${(text) => change({ metric: list('metric', text) })} />
      <${SpecChange} of=${changes.change} spec=${changes.spec} />
    </div>
    ${chips.length > 0 && html`<ul class="chips" aria-label="Changes">${chips.map(([key, text, words]) => html`<li key=${key + text}>${words} <button class="quiet" aria-label=${`Undo: ${words}`} onClick=${() => drop(key, text)}>✕</button></li>`)}</ul>`}
    <${Outcome} outcome=${outcome.value} idle=${isEmpty(changes)} />
  </section>`;
}

// useSimulation simulates the changes a moment after the last one of them.
function useSimulation(changes) {
  const value = useMemo(() => signal({}), []);
  useEffect(() => {
    if (isEmpty(changes)) {
      value.value = {};
      return undefined;
    }
    const ended = new AbortController();
    const timer = setTimeout(async () => {
      value.value = { ...value.value, running: true };
      const read = (key) => request(pathOf(key), { signal: ended.signal });
      try {
        const body = await simulationOf(changes, read);
        value.value = { result: await request('v1/simulations', { method: 'POST', body, signal: ended.signal }) };
      } catch (error) {
        if (!ended.signal.aborted) value.value = { error: error instanceof SyntaxError ? `The spec is not JSON: ${error.message}` : error.message };
      }
    }, 250);
    return () => { clearTimeout(timer); ended.abort(); };
  }, [changes]);
  return value;
}

// findClusters finds clusters of the fleet by name.
function findClusters(text) {
  const found = [];
  for (const name of clusters.keys()) if (name.includes(text)) found.push(name);
  return found.sort(compare).slice(0, 8).map((name) => ({ id: name, text: name, more: clusters.get(name).region }));
}

function ClusterChange({ add }) {
  const id = useId();
  const [what, setWhat] = useState('without');
  const [cluster, setCluster] = useState('');
  const [taint, setTaint] = useState('maintenance');
  const [effect, setEffect] = useState(effects[0]);
  version.value; // the picker finds new clusters
  const submit = (event) => {
    event.preventDefault();
    if (!cluster) return;
    if (what === 'taint') add('taint', `${cluster}=${taint}:${effect}`);
    else add(what, cluster);
    setCluster('');
  };
  return html`<form class="card" onSubmit=${submit} aria-labelledby=${id}><h2 id=${id}>A cluster</h2>
    <${Picker} label="Cluster" placeholder="name" value=${cluster} find=${findClusters} pick=${(option) => setCluster(option?.id ?? '')} />
    <label>What happens <select value=${what} onChange=${(e) => setWhat(e.target.value)}><option value="without">it is gone</option><option value="drain">it is drained</option><option value="cordon">it is cordoned</option><option value="taint">it gets a taint</option></select></label>
    ${what === 'taint' && html`<label>Taint <input value=${taint} onInput=${(e) => setTaint(e.target.value.trim().replaceAll(',', ''))} /></label><label>Effect <select value=${effect} onChange=${(e) => setEffect(e.target.value)}>${effects.map((e) => html`<option key=${e}>${e}</option>`)}</select></label>`}
    <button type="submit" disabled=${!cluster || (what === 'taint' && !taint)}>Add</button></form>`;
}

async function findMetrics(text) {
  // The list has no search: the first page is enough to choose from by name.
  const { items } = await request(`v1/metrics${query({ all: true, limit: 1000, fields: 'metadata.name,metadata.namespace,status.value' })}`);
  return items.map(({ metadata, status }) => ({ id: `${metadata.namespace ? `${metadata.namespace}/` : ''}${metadata.name}`, more: status?.value === undefined ? '' : `now ${status.value}` }))
    .filter((o) => o.id.includes(text)).slice(0, 8).map((o) => ({ ...o, text: o.id }));
}

function MetricChange({ add }) {
  const id = useId();
  const [metric, setMetric] = useState('');
  const [value, setValue] = useState('');
  const submit = (event) => {
    event.preventDefault();
    if (!metric || value === '') return;
    add(`${metric}=${Number(value)}`);
    setMetric('');
    setValue('');
  };
  return html`<form class="card" onSubmit=${submit} aria-labelledby=${id}><h2 id=${id}>A metric</h2>
    <${Picker} label="Metric" placeholder="name" value=${metric} find=${findMetrics} pick=${(option) => setMetric(option?.id ?? '')} />
    <label>Has the value <input type="number" step="any" value=${value} onInput=${(e) => setValue(e.target.value)} /></label>
    <button type="submit" disabled=${!metric || value === ''}>Add</button></form>`;
}

function SpecChange({ of, spec }) {
  const id = useId();
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const shown = useRef('');
  useEffect(() => {
    if (spec) {
      setText(JSON.stringify(safe(spec), null, 2));
    } else if (of && shown.current !== of) {
      const [kind, namespace, name] = of.split('/');
      request(pathOf({ kind, namespace, name })).then((object) => { setText(JSON.stringify(object.spec, null, 2)); setProblem(''); }, (error) => setProblem(error.message));
    } else if (!of) {
      setText('');
    }
    shown.current = of;
  }, [of, spec]);
  const submit = (event) => {
    event.preventDefault();
    try {
      change({ spec: JSON.stringify(JSON.parse(text)) });
      setProblem('');
    } catch (error) {
      setProblem(`This is not JSON: ${error.message}`);
    }
  };
  return html`<form class="card wide" onSubmit=${submit} aria-labelledby=${id}><h2 id=${id}>The spec of a placement or workload</h2>
    <${Picker} label="Placement or workload" placeholder="namespace/name" value=${of ? of.split('/').slice(1).join('/') : ''} find=${findDecisions} pick=${(option) => change({ change: option?.id ?? '', spec: '' })} />
    ${of && html`<label class="block">Spec <textarea rows="8" spellcheck=${false} value=${text} onInput=${(e) => setText(e.target.value)}></textarea></label>${problem && html`<p class="warning" role="alert">${problem}</p>`}<button type="submit">Try this spec</button>`}</form>`;
}

function safe(text) {
  try { return JSON.parse(text); } catch { return text; }
}

function Outcome({ outcome, idle }) {
  if (outcome.error) return html`<${Failure} error=${outcome.error} />`;
  if (idle) return html`<${Empty} title="Ask before it happens"><p>Take a cluster away, drain or taint it, change a metric or a spec. The server decides as it would, with the same code, and shows what would move.</p><//>`;
  if (!outcome.result) return html`<p class="muted pad" role="status">Deciding…</p>`;
  const list = outcome.result.changes;
  const where = (names, replicas) => (names.length === 0 ? 'none' : names.slice(0, 8).map((n) => (replicas?.[n] ? `${n} ×${replicas[n]}` : n)).join(', ') + (names.length > 8 ? ` and ${names.length - 8} more` : ''));
  const lost = list.filter((c) => c.to.length === 0).length;
  const columns = [
    { id: 'what', title: 'What', width: 'minmax(0, 1.1fr)', cell: (c) => html`<div class="stack"><a tabindex="-1" href=${decisionLink(c)}><span class="muted">${c.namespace ? `${c.namespace}/` : ''}</span>${c.name}</a><small class="muted">${c.kind}</small></div>` },
    { id: 'move', title: 'From and to', width: 'minmax(0, 1.6fr)', cell: (c) => html`<span class="way"><span>${where(c.from, c.from_replicas)}</span><span class="arrow" aria-label="to">→</span><span class=${c.to.length === 0 ? 'bad' : ''}>${where(c.to, c.to_replicas)}</span></span>` },
    { id: 'why', title: 'Why', width: 'minmax(0, 1.8fr)', wide: true, cell: (c) => html`<span class="why" title=${c.message}>${c.message}</span>` },
  ];
  return html`<div class=${`fill ${outcome.running ? 'busy' : ''}`}>
    <p class="lead" role="status">${list.length === 0 ? 'No decision would change.' : html`<strong>${list.length.toLocaleString()}</strong> ${list.length === 1 ? 'decision' : 'decisions'} would change${lost > 0 ? html`, <strong class="bad">${lost.toLocaleString()}</strong> would have no cluster left` : ''}.`}</p>
    ${list.length > 0 && html`<${Table} label="changes" columns=${columns} total=${list.length} row=${(i) => list[i]} keyOf=${(c) => `${c.kind}/${c.namespace}/${c.name}`} rowHeight=${52} onOpen=${(c) => { if (c.kind !== 'magnum_cluster') location.hash = decisionLink(c); }} />`}
  </div>`;
}
