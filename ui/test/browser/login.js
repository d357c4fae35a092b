// Logins with an issuer, which the test in internal/integration/ui_login_test.go runs. Its tokens are valid for an hour.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, launch, open, url } from './browser.js';

const issuer = process.env.UI_ISSUER;

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test('somebody logs in, comes back to the same view, and is asked again when the login has expired', async () => {
  const page = await open(browser, { fragment: '#/health', clock: true });
  const responses = [];
  page.on('response', (response) => { if (response.url().endsWith('/token')) responses.push(response.json()); });
  const login = page.getByRole('button', { name: 'Log in with corp' });
  await login.waitFor();
  await accessible(page, 'the lock');
  await login.click();
  await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
  assert.equal(new URL(page.url()).search, '', 'the code stays in the address');
  const { id_token: token } = await responses[0];
  const left = await page.evaluate(() => JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML]));
  assert.ok(token.length > 100 && !left.includes(token));
  assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'the verifier stays in storage');
  for (const address of page.requests) {
    assert.ok(address.startsWith(url) || address.startsWith(issuer), `the page loads ${address}`);
    assert.ok(!address.includes(token));
  }
  await page.clock.fastForward('01:00:00');
  await page.getByText('The login has expired').waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('an answer that nobody asked for opens nothing', async () => {
  const page = await open(browser);
  await page.getByLabel('Token').waitFor();
  for (const search of ['?code=stolen&state=guessed', '?error=access_denied&state=guessed']) {
    await page.goto(`${url}/ui${search}`);
    await page.getByRole('alert').getByText('was not started in this tab').waitFor();
    assert.equal(new URL(page.url()).search, '');
  }
  await page.context().close();
});
