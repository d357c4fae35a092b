// Every view of the page, on the small fleet that the test in internal/integration/ui_test.go makes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, api, close, launch, open, unlock } from './browser.js';

const admin = process.env.UI_ADMIN;
const viewer = process.env.UI_VIEWER;

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

// setElectricity changes the metric that the decision on "web" follows.
const setElectricity = (values) => api('v1/metrics-providers/table', { token: admin, method: 'PUT', body: { spec: { type: 'static', interval: '200ms', static: { metrics: values } } } });
const usual = { 'eu-1': 30, 'eu-2': 40, 'eu-3': 60, 'us-1': 55 };

const views = {
  fleet: { fragment: '#/fleet', heading: 'Fleet' },
  'fleet-table': { fragment: '#/fleet?as=table', heading: 'Fleet' },
  'fleet-decision': { fragment: '#/fleet?for=placement%2Fshop%2Fweb&cluster=us-1', heading: 'Fleet' },
  decisions: { fragment: '#/decisions', heading: 'Placements and workloads' },
  decision: { fragment: '#/decision/placement/shop/web', heading: 'shop/web' },
  workload: { fragment: '#/decision/workload/shop/api', heading: 'shop/api' },
  moves: { fragment: '#/moves', heading: 'Moves' },
  'what-if': { fragment: '#/what-if?drain=eu-1', heading: 'What if' },
  health: { fragment: '#/health', heading: 'Health' },
};

// settled waits until a view shows its data.
async function settled(page, name) {
  await page.getByRole('heading', { level: 1, name: views[name].heading }).waitFor();
  const waits = {
    fleet: () => page.getByText('19 clusters').waitFor(),
    'fleet-table': () => page.getByRole('row').nth(5).waitFor(),
    'fleet-decision': () => page.getByRole('status').getByText('clusters fit').first().waitFor(),
    decisions: () => page.getByRole('link', { name: 'shop/web' }).waitFor(),
    decision: () => page.getByRole('gridcell', { name: 'eu-1' }).first().waitFor(),
    workload: () => page.getByRole('gridcell', { name: 'eu-' }).first().waitFor(),
    moves: () => page.getByRole('link', { name: 'shop/web' }).first().waitFor(),
    'what-if': () => page.getByText('would change').waitFor(),
    health: () => page.getByRole('row', { name: /table metrics provider/ }).waitFor(),
  };
  await waits[name]();
  await page.quiet();
}

test('the page asks for a token, says why it refuses one, and forgets it', async () => {
  const page = await open(browser);
  await page.getByLabel('Token').fill('not-a-token');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('alert').getByText('unknown, revoked or expired').waitFor();
  await accessible(page, 'the lock');
  await unlock(page, admin);
  await page.getByText('19 clusters').waitFor();
  await page.getByRole('button', { name: 'Lock' }).click();
  await page.getByLabel('Token').waitFor();
  assert.equal(await page.getByText('eu-1').count(), 0);
  await unlock(page, admin);
  await page.reload();
  await page.getByLabel('Token').waitFor();
  await close(page, admin);
});

test('every view shows what it is for, and has no barriers', async () => {
  const page = await open(browser, { token: admin });
  for (const [name, { fragment }] of Object.entries(views)) {
    await page.evaluate((hash) => { location.hash = hash; }, fragment);
    await settled(page, name);
    await accessible(page, name);
  }
  await close(page, admin);
});

test('the pictures of the documentation are taken', async () => {
  const page = await open(browser, { token: admin });
  for (const name of ['fleet-decision', 'decision']) {
    await page.evaluate((hash) => { location.hash = hash; }, views[name].fragment);
    await settled(page, name);
    await page.screenshot({ path: join(process.env.UI_PICTURES, `page-${name}.png`), animations: 'disabled' });
  }
  await close(page, admin);
});

test('every view is there in the dark, and on a phone', async () => {
  for (const [suffix, options] of [['dark', { colorScheme: 'dark' }], ['phone', { colorScheme: 'dark', viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }]]) {
    const page = await open(browser, { token: admin, ...options });
    for (const [name, { fragment }] of Object.entries(views)) {
      await page.evaluate((hash) => { location.hash = hash; }, fragment);
      await settled(page, name);
      await accessible(page, `${name}, ${suffix}`);
      const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
      assert.ok(scroll <= width, `${name} on a ${suffix} is ${scroll - width} pixels too wide`);
    }
    await close(page, admin);
  }
});

test('a chosen placement lights up its clusters, and the others say why not', async () => {
  const page = await open(browser, { token: admin, fragment: '#/fleet?for=placement%2Fshop%2Fweb' });
  await page.getByText(/clusters fit/).waitFor();
  await page.getByRole('listbox', { name: 'Clusters' }).focus();
  const seen = new Map();
  for (let i = 0; i < 19; i++) {
    const text = await page.locator('#tile').textContent();
    seen.set(text.split(',')[0], text);
    await page.keyboard.press('ArrowRight');
  }
  assert.match(seen.get('eu-1'), /chosen/);
  assert.match(seen.get('us-1'), /location/, 'the constraint that keeps it out');
  await close(page, admin);
});

test('a decision shows the matrix, what would move it, and the spec to copy', async () => {
  const page = await open(browser, { token: admin, fragment: '#/decision/placement/shop/web' });
  await settled(page, 'decision');
  await page.getByText(/if the score of .* rises by more than/).waitFor();
  await page.getByText(/Nearest miss: without/).waitFor();
  const row = page.getByRole('row', { name: /us-1/ });
  await row.getByLabel('rejected').waitFor();
  await page.getByRole('tab', { name: 'Terraform' }).click();
  await page.getByText('resource "scheduler_placement" "web"').waitFor();
  await page.getByRole('tab', { name: 'JSON' }).click();
  assert.equal(JSON.parse(await page.locator('pre').textContent()).metadata.name, 'web');
  await close(page, admin);
});

test('a move is on the screen as it happens', async () => {
  await setElectricity(usual);
  const page = await open(browser, { token: admin, fragment: '#/moves' });
  await page.getByText('live', { exact: true }).waitFor();
  await setElectricity({ ...usual, 'eu-1': 99, 'eu-2': 98 });
  const row = page.getByRole('row', { name: /web.*eu-3/ }).first();
  await row.waitFor();
  assert.match(await row.textContent(), /eu-1.*→.*eu-3|eu-2.*→.*eu-3/);
  await row.getByRole('link').click();
  await page.getByRole('heading', { name: 'shop/web' }).waitFor();
  // The open decision follows the next move, too.
  await setElectricity(usual);
  await page.getByRole('row', { name: /eu-1.*chosen/ }).waitFor();
  // What has moved is kept.
  await page.getByRole('tab', { name: 'History' }).click();
  await page.getByRole('row', { name: /eu-3.*eu-1.*metric/ }).first().waitFor();
  await close(page, admin);
  const later = await open(browser, { token: admin, fragment: '#/moves' });
  await later.getByRole('row', { name: /web.*eu-3.*eu-1/ }).first().waitFor();
  await close(later, admin);
});

test('the keyboard alone is enough', async () => {
  const page = await open(browser);
  await page.waitForFunction(() => document.activeElement?.id === 'token');
  await page.keyboard.type(admin);
  await page.keyboard.press('Enter');
  await page.getByText('19 clusters').waitFor();
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  const tabTo = async (locator) => {
    for (let i = 0; i < 60; i++) {
      if (await locator.evaluate((e) => e === document.activeElement).catch(() => false)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`the tab key does not reach ${locator}`);
  };
  await tabTo(page.getByRole('listbox', { name: 'Clusters' }));
  await press('ArrowRight', 'Enter');
  await page.getByRole('complementary').waitFor();
  await press('Escape');
  await page.getByRole('complementary').waitFor({ state: 'detached' });
  await page.evaluate(() => document.querySelector('.home').focus());
  await tabTo(page.getByRole('link', { name: 'Decisions' }));
  await press('Enter');
  await page.getByRole('link', { name: 'shop/web' }).waitFor();
  await tabTo(page.getByRole('grid', { name: 'decisions' }));
  await press('End', 'Enter');
  await page.getByRole('tab', { name: /Candidates/ }).waitFor();
  await tabTo(page.getByRole('tab', { name: /Candidates/ }));
  await press('ArrowRight', 'ArrowRight');
  await page.getByText('resource "scheduler_').waitFor();
  await page.evaluate(() => document.querySelector('.home').focus());
  await tabTo(page.getByRole('link', { name: 'What if', exact: true }));
  await press('Enter');
  await tabTo(page.getByRole('combobox', { name: 'Cluster', exact: true }));
  await page.keyboard.type('eu-1');
  await page.getByRole('option', { name: 'eu-1' }).waitFor();
  await press('Enter');
  await tabTo(page.getByRole('button', { name: 'Add' }).first());
  await press('Enter');
  await page.getByText('would change').waitFor();
  await close(page, admin);
});

test('what if: every kind of change moves what it should, and the address is the link', async () => {
  const page = await open(browser, { token: admin });
  const outcome = async (params) => {
    const answered = page.waitForResponse(/simulations/);
    await page.evaluate((hash) => { location.hash = hash; }, `#/what-if?${new URLSearchParams(params)}`);
    await answered;
    await page.quiet();
    await page.locator('.busy').waitFor({ state: 'detached' });
    return page.locator('[aria-label=changes], .lead').allTextContents().then((t) => t.join(' '));
  };
  assert.match(await outcome({ without: 'eu-1' }), /web.*eu-1.*→/);
  assert.match(await outcome({ drain: 'eu-1' }), /web.*eu-1.*→/);
  assert.match(await outcome({ taint: 'eu-1=maintenance:NoSelect' }), /web.*eu-1.*→/);
  assert.match(await outcome({ metric: 'eu-1=99' }), /web.*eu-1.*→/);
  assert.match(await outcome({ change: 'placement/shop/web', spec: '{"number_of_clusters":1,"label_constraints":["location is US"]}' }), /web.*→us-1/);
  assert.match(await outcome({ cordon: 'us-1' }), /No decision would change/);
  const link = page.url();
  await close(page, admin);
  const other = await open(browser, { token: viewer, fragment: new URL(link).hash });
  await other.getByText('us-1 is cordoned').waitFor();
  await close(other, viewer);
});

test('a viewer of one namespace sees that namespace, and nothing of another one', async () => {
  const page = await open(browser, { token: viewer });
  for (const { fragment } of Object.values(views)) {
    await page.evaluate((hash) => { location.hash = hash; }, fragment);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.quiet();
    assert.ok(!(await page.content()).includes('vault'), `${fragment} shows the other namespace`);
  }
  await page.evaluate(() => { location.hash = '#/decisions'; });
  await page.getByRole('link', { name: 'shop/web' }).waitFor();
  await page.evaluate(() => { location.hash = '#/decision/placement/vault/gold'; });
  await page.getByRole('alert').waitFor();
  await close(page, viewer);
});

test('a token that is revoked closes the page', async () => {
  const { token, id } = await api('v1/tokens', { token: admin, method: 'POST', body: { role: 'viewer' } });
  const page = await open(browser, { token });
  await page.getByText('19 clusters').waitFor();
  await fetch(`${process.env.UI_URL}/v1/tokens/${id}`, { method: 'DELETE', headers: { Authorization: `Bearer ${admin}` } });
  await page.getByLabel('Token').waitFor();
  await close(page, token);
});

test('a token that is refused while the fleet loads locks the page', async () => {
  const page = await open(browser);
  await page.route('**/v1/cluster-sets*', (route) => route.fulfill({
    status: 401, contentType: 'application/problem+json', body: JSON.stringify({ status: 401, detail: 'the token has been revoked' }),
  }));
  await page.getByLabel('Token').fill(admin);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('the token has been revoked').waitFor();
  await page.getByLabel('Token').waitFor();
  await close(page, admin);
});

test('text that users write stays text', async () => {
  const attack = '<img src=x onerror="wasAttacked=1">';
  const put = (path, body) => api(path, { token: admin, method: 'PUT', body });
  await put('v1/clusters/hostile', { spec: { description: attack, cloud_provider: attack, region: attack, zones: [attack], claims: { hostile: attack }, taints: [{ key: 'hostile', value: attack, effect: 'NoSelect' }], allocatable: { [attack]: '1' } } })
    .catch(() => put('v1/clusters/hostile', { spec: { description: attack, cloud_provider: attack, region: attack, zones: [attack], claims: { hostile: attack }, taints: [{ key: 'hostile', value: attack, effect: 'NoSelect' }] } }));
  await put('v1/namespaces/shop/placements/hostile', { spec: { predicates: [{ claim_selector: { match_expressions: [{ key: 'hostile', operator: 'In', values: [attack] }] } }] } });
  await put('v1/namespaces/shop/workloads/hostile', { spec: { api_version: 'apps/v1', kind: 'StatefulSet', replicas: 1, allocation: { flavors: [attack], operator: attack, geo_location: { city: attack } } } });
  await put('v1/metrics-providers/hostile', { spec: { type: 'prometheus', prometheus: { url: `http://127.0.0.1:1/${encodeURIComponent(attack)}` } } });
  await put('v1/metrics/hostile', { spec: { min: 0, max: 1, on_failure: 'ignore', metrics_provider: { name: 'hostile', metric: attack } } });
  await put('v1/namespaces/shop/placements/hostile', { spec: { number_of_clusters: 1, cluster_names: ['us-4'], predicates: [{ claim_selector: { match_expressions: [{ key: 'other', operator: 'NotIn', values: [attack] }] } }] } });
  const page = await open(browser, { token: admin });
  const fragments = [...Object.values(views).map((v) => v.fragment), '#/fleet?cluster=hostile&group=provider', '#/fleet?group=region&as=table&cluster=hostile', '#/decision/placement/shop/hostile', '#/decision/placement/shop/hostile?tab=spec', '#/decision/placement/shop/hostile?tab=json',
    '#/decision/workload/shop/hostile?tab=spec', '#/what-if?without=hostile&taint=<img src=x onerror=xss()>=a:b', '#/<img src=x onerror=xss()>', '#/fleet?find=<script>xss()</script>&group=label:<b>x</b>', '#/health?only=failing',
    '#/moves?find=shop%2Fhostile', '#/moves?find=<img src=x onerror=xss()>'];
  for (const fragment of fragments) {
    await page.evaluate((hash) => { location.hash = hash; }, fragment);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.quiet();
    const foreign = await page.evaluate(() => [...document.querySelectorAll('img, iframe, object, embed, script:not([src*="ui/app-"]), body *[onerror], body *[onload], a[href^="javascript"]')].map((e) => e.outerHTML));
    assert.deepEqual(foreign, [], `${fragment} has elements of a user`);
    assert.equal(await page.evaluate(() => globalThis.wasAttacked), undefined);
  }
  // It is shown, as text.
  await page.evaluate(() => { location.hash = '#/fleet?cluster=hostile'; });
  await page.getByText('<img src=x onerror="wasAttacked=1">').first().waitFor();
  await close(page, admin);
});
