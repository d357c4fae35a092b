// A real browser on the page of a real server. The variables say where: UI_URL, UI_CHROMIUM, and tokens.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

export const url = process.env.UI_URL;

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// launch starts a browser, for one file of tests.
export const launch = () => chromium.launch({ executablePath: process.env.UI_CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });

// open opens the page as a reader with an empty browser, whose clock may be one that the test can put forward. What a page
// must never do is collected in page.wrong.
export async function open(browser, { token, fragment = '', clock = false, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, ...options });
  const page = await context.newPage();
  if (clock) await page.clock.install();
  page.setDefaultTimeout(60_000);
  page.wrong = [];
  page.requests = [];
  page.on('pageerror', (error) => page.wrong.push(`an error: ${error.stack}`));
  page.on('console', (message) => {
    // A browser logs every response that is not a success.
    if (!/Failed to load resource/.test(message.text())) page.wrong.push(`the console: ${message.text()}`);
  });
  page.on('dialog', (dialog) => { page.wrong.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  const pending = new Set();
  page.on('request', (request) => {
    page.requests.push(request.url());
    if (!request.url().includes('/v1/watch')) pending.add(request);
  });
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => pending.delete(request));
  // quiet waits until the page has what it asked for, and has drawn it. The watch never ends.
  page.quiet = async () => {
    for (let frames = 0; frames < 3; frames++) {
      if (pending.size > 0) frames = 0;
      await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
    }
  };
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`violates the policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(`${url}/ui${fragment}`);
  if (token) await unlock(page, token);
  return page;
}

// unlock gives the page a token.
export async function unlock(page, token) {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('navigation', { name: 'Views' }).waitFor();
}

// close fails if the page did what it must not, or left the token anywhere.
export async function close(page, token) {
  const left = await page.evaluate(async () => JSON.stringify([
    location.href, document.cookie, { ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys().catch(() => []),
    history.state, document.documentElement.outerHTML, [...document.querySelectorAll('input, textarea')].map((e) => e.value),
  ]));
  if (token) {
    assert.ok(!left.includes(token), 'the token is in the address, in storage, or in the document');
    for (const address of page.requests) assert.ok(!address.includes(token), `the token is in ${address}`);
  }
  for (const address of page.requests) assert.ok(address.startsWith(url), `the page loads ${address}`);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
}

// accessible fails for what axe-core finds serious.
export async function accessible(page, what) {
  // The policy of the page keeps programs out, also this one; the debugger may run it.
  await page.evaluate(`${axe}; 0`);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map((v) => `${v.id}: ${v.help}\n${v.nodes.slice(0, 3).map((n) => `  ${n.html.slice(0, 300)}\n  ${n.failureSummary}`).join('\n')}`);
  assert.deepEqual(serious, [], `${what} has barriers`);
}

// api calls the server as a reader with a token would.
export async function api(path, { token, method = 'GET', body } = {}) {
  const response = await fetch(`${url}/${path}`, {
    method, body: body && JSON.stringify(body), headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) },
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${response.ok ? '' : await response.text()}`);
  return response.json();
}
