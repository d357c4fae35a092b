// Login with an issuer: OpenID Connect Core 1.0, section 3.1 (authorization code), with PKCE (RFC 7636). The page gets
// the ID token from the issuer and sends it as its bearer token; the server takes no part in it. What has to survive the
// way to the issuer and back is no secret of the user: it is kept for this tab, and removed on return. The token itself is
// only in memory.

const storageKey = 'login';

const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

const random = (length) => base64url(crypto.getRandomValues(new Uint8Array(length)));

// challengeOf is what the issuer compares the verifier with.
export const challengeOf = async (verifier) => base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));

// decodeClaims returns the claims of a token, or {}. The server verifies them: here only the nonce and the expiry are needed.
export function decodeClaims(token) {
  try {
    const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (c) => c.charCodeAt(0)))) ?? {};
  } catch {
    return {};
  }
}

// json fetches a document of an issuer. fetch says nothing about the cause of a failure, so the usual ones are named.
async function json(url, options) {
  let response;
  try {
    response = await fetch(url, { ...options, credentials: 'omit', cache: 'no-store', redirect: 'error' });
  } catch {
    throw new Error(`${new URL(url).host} cannot be reached, or does not allow requests from ${location.origin} (CORS)`);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error_description || body.error || `${new URL(url).host} answered ${response.status}`);
  return body;
}

// discover returns the endpoints of an issuer. They must be as trustworthy as the issuer's own address, and the page may
// call no other one: its policy names the issuer.
async function discover(issuer) {
  const found = await json(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if (found.issuer !== issuer) throw new Error(`the discovery document is that of ${found.issuer}, not of ${issuer}`);
  for (const name of ['authorization_endpoint', 'token_endpoint']) {
    if (new URL(found[name]).protocol !== new URL(issuer).protocol) throw new Error(`${name} of ${issuer} is not a ${new URL(issuer).protocol} address`);
  }
  if (new URL(found.token_endpoint).origin !== new URL(issuer).origin) throw new Error(`the token endpoint of ${issuer} is elsewhere, at ${new URL(found.token_endpoint).origin}: the page calls the issuer only`);
  return found;
}

const redirectURI = () => location.origin + location.pathname;

// begin sends the user to an issuer of GET /v1/logins. The view is shown again on return.
export async function begin(option) {
  const { authorization_endpoint: endpoint } = await discover(option.issuer);
  const login = { option, verifier: random(32), state: random(16), nonce: random(16), view: location.hash };
  const url = new URL(endpoint);
  const parameters = {
    response_type: 'code', client_id: option.client_id, redirect_uri: redirectURI(), scope: (option.scopes ?? ['openid']).join(' '),
    state: login.state, nonce: login.nonce, code_challenge: await challengeOf(login.verifier), code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  sessionStorage.setItem(storageKey, JSON.stringify(login));
  location.assign(url);
}

// returned returns what the issuer sent back with the user, or null if the page was opened otherwise. The address is
// cleaned at once: the code must not stay in the history.
export function returned() {
  const answer = new URLSearchParams(location.search);
  const stored = sessionStorage.getItem(storageKey);
  sessionStorage.removeItem(storageKey);
  if (!answer.has('state') || !(answer.has('code') || answer.has('error'))) return null;
  const login = stored ? JSON.parse(stored) : null;
  history.replaceState(null, '', location.pathname + (login?.view ?? ''));
  return { login, state: answer.get('state'), code: answer.get('code'), error: answer.get('error_description') || answer.get('error') };
}

// finish exchanges what returned() returned for the token.
export async function finish({ login, state, code, error }) {
  if (!login || login.state !== state) throw new Error('the login was not started in this tab, or is already over: log in again');
  if (error) throw new Error(error);
  const { option } = login;
  const { token_endpoint: endpoint } = await discover(option.issuer);
  const body = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: redirectURI(), client_id: option.client_id, code_verifier: login.verifier });
  const { id_token: token } = await json(endpoint, { method: 'POST', body });
  if (!token) throw new Error(`${option.name} returned no ID token`);
  if (decodeClaims(token).nonce !== login.nonce) throw new Error(`${option.name} returned the token of another login`);
  return token;
}
