// Where the page is, in the fragment of its address: it is shared as a link, and never sent to a server. It has no token.
import { signal } from '@preact/signals';

// parseRoute reads "#/view/more/parts?key=value" into { view, parts, params }.
export function parseRoute(fragment) {
  const [path, search = ''] = splitOnce(fragment.replace(/^#\/?/, ''), '?');
  const parts = path.split('/').filter(Boolean).map(decode);
  const params = {};
  for (const [key, value] of new URLSearchParams(search)) params[key] = value;
  return { view: parts[0] ?? 'fleet', parts: parts.slice(1), params };
}

// formatRoute is the inverse. Empty parameters are left out.
export function formatRoute(view, parts = [], params = {}) {
  const set = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return `#/${[view, ...parts].map(encodeURIComponent).join('/')}${set.length ? `?${new URLSearchParams(set)}` : ''}`;
}

function splitOnce(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

// route is the current one.
export const route = signal(parseRoute(globalThis.location?.hash ?? ''));

globalThis.addEventListener?.('hashchange', () => { route.value = parseRoute(location.hash); });

// go opens a view.
export function go(view, parts, params) { location.hash = formatRoute(view, parts, params); }

// change sets parameters of the current view, without an entry in the history: filters are not places.
export function change(params) {
  const { view, parts, params: old } = route.value;
  history.replaceState(null, '', formatRoute(view, parts, { ...old, ...params }));
  route.value = parseRoute(location.hash);
}

// decisionLink is the address of one decision.
export const decisionLink = ({ kind, namespace, name }) => formatRoute('decision', [kind, namespace, name]);
