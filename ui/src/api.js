// The API of the server that this page came from. The token is in this module's memory and in the Authorization header
// of requests to this server, and nowhere else: not in the address, not in storage, not in a log.

let token = '';
let rejected = () => {};

// setToken sets the token of all further requests; "" for none.
export function setToken(text) { token = text; }

// onRejected sets what is called when the server does not accept the token.
export function onRejected(handler) { rejected = handler; }

// Problem is why a request failed, as a sentence for people.
export class Problem extends Error {
  constructor(status, document) {
    const fields = (document.errors ?? []).map((e) => `${e.field}: ${e.message}`).join('; ');
    super(fields || document.detail || document.title || `the server answered with status ${status}`);
    this.status = status;
  }
}

// open sends a request and returns the response, whatever its body is. An anonymous one is for what needs no token.
export async function open(path, { method = 'GET', body, headers = {}, signal, anonymous = false } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method, signal, body: body === undefined ? undefined : JSON.stringify(body),
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...(token && !anonymous ? { Authorization: `Bearer ${token}` } : {}), ...headers },
      cache: 'no-store', credentials: 'omit', redirect: 'error',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { detail: 'the server cannot be reached' });
  }
  if (response.ok) return response;
  const document = await response.json().catch(() => ({}));
  if (response.status === 401 && !anonymous) rejected(document.detail ?? '');
  throw new Problem(response.status, document);
}

// request sends a request and returns the JSON of the response.
export async function request(path, options) {
  const response = await open(path, options);
  return response.json();
}

// query writes the parameters of a request; empty ones are left out.
export function query(parameters) {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return set.length ? `?${new URLSearchParams(set.map(([key, value]) => [key, String(value)]))}` : '';
}

const collections = { placement: 'placements', workload: 'workloads', metric: 'metrics', metrics_provider: 'metrics-providers', cluster: 'clusters' };

// pathOf is the path of an object.
export function pathOf({ kind, namespace, name }) {
  const within = namespace ? `v1/namespaces/${encodeURIComponent(namespace)}/` : 'v1/';
  return `${within}${collections[kind]}/${encodeURIComponent(name)}`;
}

// pause lets the browser paint and handle input between pieces of work.
export const pause = () => (globalThis.scheduler?.yield ? globalThis.scheduler.yield() : new Promise((resolve) => { setTimeout(resolve); }));

// pages yields the pages of a list. They are small enough that reading one blocks nothing.
export async function* pages(collection, parameters = {}, options = {}) {
  for (let next = ''; ;) {
    const page = await request(`v1/${collection}${query({ limit: 1000, ...parameters, continue: next })}`, options);
    yield page;
    if (!page.continue) return;
    next = page.continue;
    await pause();
  }
}
