// Small parts that several views have.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { ago, clock, now } from './time.js';

// Pill says a state in a word, with a sign for those who do not see its color.
export function Pill({ tone, children }) {
  return html`<span class=${`pill ${tone}`}><span aria-hidden="true">${{ good: '●', bad: '▲', warn: '◆', quiet: '○' }[tone]}</span> ${children}</span>`;
}

// Since shows how long ago something was, with the time as its title.
export function Since({ at }) {
  if (!at) return html`<span class="muted">never</span>`;
  return html`<time datetime=${typeof at === 'number' ? new Date(at).toISOString() : at} title=${clock(at)}>${ago(at, now.value)}</time>`;
}

// Empty says what to do where there is nothing yet.
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

// Failure says why something could not be read.
export function Failure({ error, retry }) {
  return html`<div class="failure" role="alert"><p>${error}</p>${retry && html`<button onClick=${retry}>Try again</button>`}</div>`;
}

// Copy copies a text. Where the page may not, as over plain HTTP, the text is selected.
export function Copy({ text, label = 'Copy', of }) {
  const [done, setDone] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone('Copied');
    } catch {
      const element = of?.current;
      if (element) {
        const range = document.createRange();
        range.selectNodeContents(element);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
      }
      setDone('Press Ctrl+C to copy');
    }
    setTimeout(() => setDone(''), 2500);
  };
  return html`<button class="quiet" onClick=${copy}><span aria-live="polite">${done || label}</span></button>`;
}

// Satisfaction says in a word what became of a decision.
export function Satisfaction({ row }) {
  if (row.held) return html`<${Pill} tone="warn">held<//>`;
  if (row.satisfied === 'True') return html`<${Pill} tone="good">satisfied<//>`;
  if (row.satisfied === 'False') return html`<${Pill} tone="bad">not satisfied<//>`;
  return html`<${Pill} tone="quiet">undecided<//>`;
}

// Names lists some names, and how many more there are.
export function Names({ names, count }) {
  if (names.length === 0) return html`<span class="muted">none</span>`;
  return html`<span class="names">${names.join(', ')}${count > names.length ? html` <span class="muted">and ${count - names.length} more</span>` : ''}</span>`;
}
