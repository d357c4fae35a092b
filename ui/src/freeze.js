// Freezes: nothing moves that need not. Which are in force, and how to begin and to end one.
import { useState } from 'preact/hooks';
import { open, request } from './api.js';
import { html } from './html.js';
import { Failure, Pill } from './parts.js';
import { readServer, server } from './session.js';
import { clock, duration, instantOf, now, serverNow } from './time.js';
import { onEvents } from './watch.js';

// inForce returns the freezes that hold at a time, those of everything first.
export function inForce(freezes, at) {
  return (freezes ?? []).filter((f) => !(Date.parse(f.until) <= at)).sort((a, b) => Number(Boolean(a.namespace)) - Number(Boolean(b.namespace)));
}

const whereOf = (freeze) => (freeze.namespace ? `namespace ${freeze.namespace}` : 'everything');
const pathOf = ({ namespace, name }) => `v1/${namespace ? `namespaces/${encodeURIComponent(namespace)}/` : ''}freeze/${encodeURIComponent(name)}`;

// freezeOf makes the request for POST /v1/freeze. lasts is a number of hours, 'at' for the time that is given, or '' for
// a freeze that ends when somebody ends it.
export function freezeOf({ reason, namespaces, lasts, at }, time) {
  const list = namespaces.split(/[\s,]+/).filter(Boolean);
  const until = lasts === '' ? '' : lasts === 'at' ? instantOf(at) : new Date(time + Number(lasts) * 3_600_000).toISOString();
  return { reason: reason.trim(), ...(until ? { until } : {}), ...(list.length > 0 ? { namespaces: list } : {}) };
}

// Frozen says in the bar of the page that something is frozen, and leads to it.
export function Frozen({ href }) {
  const freezes = inForce(server.value?.freezes, now.value);
  if (freezes.length === 0) return null;
  return html`<a class="frozen" href=${href} title=${freezes.slice(0, 5).map((f) => `${whereOf(f)}: ${f.reason}`).join('; ')}><${Pill} tone="warn">frozen<//></a>`;
}

// A freeze is told by the watch, and is read with the state of the server.
onEvents((events) => { if (events.some(({ object }) => object.kind === 'freeze')) readServer().catch(() => {}); });

// Freezes is the card.
export function Freezes() {
  const freezes = inForce(server.value?.freezes, now.value);
  const [refused, setRefused] = useState(false);
  const [error, setError] = useState('');
  // What the server refuses for want of rights is not offered any more.
  const act = async (action) => {
    setError('');
    try {
      await action();
      await readServer();
      return true;
    } catch (e) {
      setError(e.message);
      if (e.status === 403) setRefused(true);
      return false;
    }
  };
  return html`<article class="card" aria-labelledby="freezes"><h2 id="freezes">Freezes</h2>
    <p>${freezes.length === 0 ? html`<${Pill} tone="good">nothing is frozen<//>` : html`<${Pill} tone="warn">${freezes.length === 1 ? '1 freeze' : `${freezes.length.toLocaleString()} freezes`}<//>`}</p>
    ${freezes.length > 0 && html`<ul class="plain freezes" aria-label="Freezes in force">${freezes.slice(0, 50).map((f) => html`<${Freeze} key=${`${f.namespace}/${f.name}`} freeze=${f} refused=${refused} act=${act} />`)}</ul>`}
    ${error && html`<${Failure} error=${error} />`}
    ${!refused && html`<${Form} act=${act} />`}</article>`;
}

function Freeze({ freeze, refused, act }) {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const thaw = async () => { setBusy(true); await act(() => open(`${pathOf(freeze)}?wait=0s`, { method: 'DELETE' })); setBusy(false); setAsked(false); };
  const left = Date.parse(freeze.until) - now.value;
  return html`<li><strong>${whereOf(freeze)}</strong>: ${freeze.reason} <span class="muted">${freeze.until ? `until ${clock(freeze.until)}, in ${duration(left)}` : 'until it is thawed'}</span>
    ${!refused && (asked
      ? html`<span class="actions"><button onClick=${thaw} disabled=${busy}>Thaw ${whereOf(freeze)} now</button><button class="quiet" onClick=${() => setAsked(false)}>Keep</button></span>`
      : html` <button class="quiet" onClick=${() => setAsked(true)} aria-label=${`Thaw ${whereOf(freeze)}…`}>Thaw…</button>`)}</li>`;
}

function Form({ act }) {
  const [asked, setAsked] = useState(false);
  const [fields, setFields] = useState({ reason: '', namespaces: '', lasts: '1', at: '' });
  const [busy, setBusy] = useState(false);
  const set = (name) => (event) => setFields({ ...fields, [name]: event.target.value });
  if (!asked) return html`<button class="quiet" onClick=${() => setAsked(true)}>Freeze…</button>`;
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    const done = await act(() => request('v1/freeze?wait=0s', { method: 'POST', body: freezeOf(fields, serverNow()) }));
    setBusy(false);
    if (done) { setAsked(false); setFields({ ...fields, reason: '' }); }
  };
  const what = fields.namespaces.trim() ? `Freeze ${fields.namespaces.trim()}` : 'Freeze everything';
  return html`<form class="freeze" onSubmit=${submit} aria-label="Freeze">
    <label class="block">Reason <input required value=${fields.reason} placeholder="everybody who is held sees it" onInput=${set('reason')} /></label>
    <label class="block">Namespaces <input value=${fields.namespaces} placeholder="everything" onInput=${set('namespaces')} /></label>
    <label class="block">Ends <select value=${fields.lasts} onChange=${set('lasts')}><option value="1">in 1 hour</option><option value="4">in 4 hours</option><option value="24">in 1 day</option><option value="at">at a time</option><option value="">when it is thawed</option></select></label>
    ${fields.lasts === 'at' && html`<label class="block">Time <input type="datetime-local" required value=${fields.at} onInput=${set('at')} /></label>`}
    <p class="muted">Decisions still leave clusters that are lost or tainted, and follow their own writes.</p>
    <p class="actions"><button type="submit" disabled=${busy || !fields.reason.trim()}>${what}</button><button type="button" class="quiet" onClick=${() => setAsked(false)}>Cancel</button></p></form>`;
}
