// The page: a bar with the views, and the one that the address names.
import { effect } from '@preact/signals';
import { Component, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { forgetClusters } from './clusters.js';
import { Decision } from './decision.js';
import { Decisions } from './decisions.js';
import { Fleet } from './fleet.js';
import { forgetHealth, Health } from './health.js';
import { html } from './html.js';
import { begin } from './login.js';
import { forgetMoves, Moves } from './moves.js';
import { Failure } from './parts.js';
import { formatRoute, route } from './route.js';
import { arrive, lock, logins, reason, server, start, state } from './session.js';
import { connection } from './watch.js';
import { WhatIf } from './what-if.js';

const views = {
  fleet: { title: 'Fleet', view: Fleet },
  decisions: { title: 'Decisions', view: Decisions },
  moves: { title: 'Moves', view: Moves },
  'what-if': { title: 'What if', view: WhatIf },
  health: { title: 'Health', view: Health },
};

function App() {
  if (state.value === 'starting') return html`<main class="alone" aria-busy="true"></main>`;
  if (state.value === 'failed') return html`<main class="alone"><${Logo} /><${Failure} error=${reason.value} retry=${() => start('')} /></main>`;
  if (state.value === 'locked') return html`<${Lock} />`;
  return html`<${Shell} />`;
}

function Logo() {
  return html`<span class="logo" aria-hidden="true"><i></i><i></i><i></i><i></i></span>`;
}

// Lock asks for a token, or leads to an issuer of one. It is no form that a browser would send or remember.
function Lock() {
  const [text, setText] = useState('');
  const [failed, setFailed] = useState('');
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  useEffect(() => { field.current.focus(); }, []);
  const submit = async (event) => {
    event.preventDefault();
    if (!text.trim() || busy) return;
    setBusy(true);
    const token = text.trim();
    setText('');
    await start(token);
    setBusy(false);
  };
  return html`<main class="alone"><form class="lock" onSubmit=${submit}>
    <h1><${Logo} /> Scheduler</h1>
    ${logins.value.map((option) => html`<button key=${option.name} type="button" onClick=${() => begin(option).catch((error) => setFailed(error.message))}>Log in with ${option.name}</button>`)}
    ${failed && html`<p class="warning" role="alert">${failed}</p>`}
    <label for="token">Token</label>
    <input id="token" ref=${field} type="password" autocomplete="off" spellcheck=${false} value=${text} onInput=${(e) => setText(e.target.value)} aria-describedby="token-note" />
    ${reason.value && html`<p class="warning" role="alert">${reason.value}</p>`}
    <button type="submit" disabled=${busy || !text.trim()}>${busy ? 'Opening…' : 'Open'}</button>
    <p id="token-note" class="muted">It stays in the memory of this page until you close or reload it. A viewer's token is enough: <code>scheduler-server token create --role viewer</code></p>
  </form></main>`;
}

function Shell() {
  const view = route.value.view;
  const current = view === 'decision' ? 'decisions' : view;
  const content = useRef(null);
  const first = useRef(true);
  const place = [view, ...route.value.parts].join('/');
  // Who navigates with a keyboard or a screen reader arrives where the new view begins.
  useEffect(() => {
    if (first.current) first.current = false;
    else content.current.focus({ preventScroll: true });
  }, [place]);
  const Current = view === 'decision' ? Decision : views[view]?.view;
  return html`<div class="shell">
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); content.current.focus(); }}>Skip to content</a>
    <header class="top">
      <a class="home" href=${formatRoute('fleet')} aria-label="Scheduler, fleet"><${Logo} /><span>Scheduler</span></a>
      <nav aria-label="Views">${Object.entries(views).map(([id, { title }]) => html`<a key=${id} href=${formatRoute(id)} aria-current=${id === current ? 'page' : undefined}>${title}</a>`)}</nav>
      <${State} />
    </header>
    <main id="content" ref=${content} tabindex="-1">
      <${Guard} key=${place}>${Current ? html`<${Current} key=${place} />` : html`<section class="view"><h1>There is no such view</h1><p><a href=${formatRoute('fleet')}>Go to the fleet</a></p></section>`}<//>
    </main>
  </div>`;
}

// State says whether what is shown is current.
function State() {
  const live = connection.value === 'live';
  return html`<div class="status"><span class=${`light ${connection.value}`} aria-hidden="true"></span><span role="status" class="words">${live ? 'live' : connection.value === 'connecting' ? 'connecting' : 'reconnecting'}</span>
    <span class="muted version">${server.value?.version}</span>
    <button class="quiet" onClick=${() => { lock(); }} title="Forget the token">Lock</button></div>`;
}

// Guard keeps the rest of the page when a view fails.
class Guard extends Component {
  static getDerivedStateFromError(error) { return { error }; }

  render({ children }, { error }) {
    return error ? html`<section class="view"><h1>This view failed</h1><${Failure} error=${error.message} retry=${() => this.setState({ error: null })} /></section>` : children;
  }
}

// What one reader saw is gone before the next one looks.
effect(() => {
  if (state.value !== 'locked') return;
  forgetClusters();
  forgetMoves();
  forgetHealth();
});

effect(() => {
  const { view, parts } = route.value;
  document.title = `${(view === 'decision' ? parts.slice(1).join('/') : views[view]?.title) ?? 'Not found'} · Scheduler`;
});

render(html`<${App} />`, document.getElementById('app'));
arrive();
