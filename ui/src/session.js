// Who looks at the page: asks for a token if the server wants one, loads the fleet, and follows its changes.
import { signal } from '@preact/signals';
import { onRejected, request, setToken } from './api.js';
import { load } from './clusters.js';
import { decodeClaims, finish, returned } from './login.js';
import { parseRoute, route } from './route.js';
import { setServerTime } from './time.js';
import { follow } from './watch.js';

// state is 'starting', 'locked' (a token is needed), 'open' or 'failed'.
export const state = signal('starting');
// reason is why the page is locked or could not start.
export const reason = signal('');
// server is what GET /v1/server said last.
export const server = signal(null);

// logins are the issuers that people can log in with.
export const logins = signal([]);

let following = new AbortController();
let expiry;

// What was still under way when the page was locked must not replace the reason.
onRejected((detail) => { if (state.value !== 'locked') lock(state.value === 'open' ? detail : ''); });

// arrive opens the page for somebody who just came, perhaps back from an issuer.
export async function arrive() {
  const answer = returned();
  if (!answer) return start('');
  // Where the way to the issuer began; nothing tells that the address has changed.
  route.value = parseRoute(location.hash);
  try {
    return await start(await finish(answer));
  } catch (error) {
    return lock(error.message);
  }
}

// The longest time that a timer takes.
const longest = 2 ** 31 - 1;

// start opens the page, with a token or ("") without.
export async function start(token) {
  following.abort();
  const own = new AbortController();
  following = own;
  setToken(token);
  reason.value = '';
  clearTimeout(expiry);
  const { exp } = decodeClaims(token);
  if (exp) expiry = setTimeout(() => lock('The login has expired: log in again.'), Math.min(longest, exp * 1000 - Date.now()));
  try {
    await readServer();
  } catch (error) {
    if (error.status === 401) {
      lock(token ? error.message : '');
    } else {
      reason.value = error.message;
      state.value = 'failed';
    }
    return;
  }
  if (own.signal.aborted) return;
  state.value = 'open';
  const revision = await load(own.signal).catch((error) => { if (!own.signal.aborted) reason.value = error.message; });
  if (own.signal.aborted) return; // the page was locked while the fleet was loading
  follow(revision ?? String(server.value.store.revision), () => load(own.signal), own.signal);
}

// lock forgets the token.
export function lock(why = '') {
  following.abort();
  clearTimeout(expiry);
  setToken('');
  server.value = null;
  reason.value = why;
  state.value = 'locked';
  // Servers that nobody can log in to have none.
  request('v1/logins', { anonymous: true }).then(({ items }) => { logins.value = items ?? []; }, () => { logins.value = []; });
}

// readServer asks for the state of the server.
export async function readServer() {
  server.value = await request('v1/server');
  setServerTime(server.value.now);
}
