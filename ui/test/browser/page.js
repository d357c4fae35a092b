// Every view of the page, on the small fleet that the test in integration/ui_test.go makes.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, api, close, launch, open, unlock } from './browser.js';

const admin = process.env.UI_ADMIN;
const viewer = process.env.UI_VIEWER;
const pictures = process.env.UI_SCREENSHOTS;

let browser;
before(async () => {
  browser = await launch();
  if (pictures) await mkdir(pictures, { recursive: true });
  // A decision that waits for approval, and one of the past.
  await stage('us-2');
  await stage('us-3');
  const { items } = await api('v1/history?kind=placement&namespace=shop&name=web&limit=1', { token: admin });
  views.past.fragment = `#/decision/placement/shop/web?at=${items[0].revision}`;
});
after(() => browser.close());

// The pictures that the documentation shows.
const shown = ['fleet-decision', 'decision', 'what-if', 'moves-live', 'past', 'rollout', 'health', 'decisions-dark', 'fleet-phone'];
const picture = (page, name) => (pictures && shown.includes(name) ? page.screenshot({ path: path.join(pictures, `ui-${name}.png`) }) : undefined);

// setElectricity changes the metric that the decision on "web" follows.
const setElectricity = (values) => api('v1/metrics-providers/table', { token: admin, method: 'PUT', body: { spec: { type: 'static', interval: '200ms', static: { metrics: values } } } });
// stage means a placement to be on a cluster, in steps that are approved.
const stage = (cluster, more = {}) => api('v1/namespaces/shop/placements/staged', { token: admin, method: 'PUT', body: { spec: { number_of_clusters: 1, cluster_names: [cluster], rollout: { approval: 'step', min_success_time: '0s' }, ...more } } });
const usual = { 'eu-1': 30, 'eu-2': 40, 'eu-3': 60, 'us-1': 55 };

const views = {
  fleet: { fragment: '#/fleet', heading: 'Fleet' },
  'fleet-table': { fragment: '#/fleet?as=table', heading: 'Fleet' },
  'fleet-decision': { fragment: '#/fleet?for=placement%2Fshop%2Fweb&cluster=us-1', heading: 'Fleet' },
  decisions: { fragment: '#/decisions', heading: 'Placements and workloads' },
  decision: { fragment: '#/decision/placement/shop/web', heading: 'shop/web' },
  workload: { fragment: '#/decision/workload/shop/api', heading: 'shop/api' },
  moves: { fragment: '#/moves', heading: 'Moves' },
  history: { fragment: '#/decision/placement/shop/web?tab=history', heading: 'shop/web' },
  past: { fragment: '', heading: 'shop/web' },
  rollout: { fragment: '#/decision/placement/shop/staged', heading: 'shop/staged' },
  demand: { fragment: '#/decision/placement/shop/far', heading: 'shop/far' },
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
    history: () => page.getByRole('grid', { name: 'history' }).getByText('→').first().waitFor(),
    past: () => page.getByText('What changed then').waitFor(),
    rollout: () => page.getByRole('heading', { name: /Rollout \d+: step 1 of 1/ }).waitFor(),
    demand: () => page.getByText('2 clusters are missing').first().waitFor(),
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
  await picture(page, 'lock');
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
    await picture(page, name);
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
      await picture(page, `${name}-${suffix}`);
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
  await picture(page, 'moves-live');
  assert.match(await row.textContent(), /the value of metric eu-1 changed: 30 → 99|metric/, 'the cause');
  await row.getByRole('link').click();
  await page.getByRole('heading', { name: 'shop/web' }).waitFor();
  await page.getByRole('status').getByText(/^As of/).waitFor();
  await page.getByRole('link', { name: 'Back to now' }).click();
  // The open decision follows the next move, too.
  await setElectricity(usual);
  await page.getByRole('row', { name: /eu-1.*chosen/ }).waitFor();
  await close(page, admin);
});

test('the history is filtered, and each entry leads to the decision as it was', async () => {
  const page = await open(browser, { token: admin, fragment: '#/moves' });
  const grid = page.getByRole('grid', { name: 'moves' });
  await grid.getByRole('link', { name: 'vault/gold' }).first().waitFor();
  await page.getByLabel('Object').fill('shop/web');
  await page.getByLabel('Object').press('Enter');
  await grid.getByRole('link', { name: 'vault/gold' }).first().waitFor({ state: 'detached' });
  await grid.getByRole('link', { name: 'shop/web' }).first().waitFor();
  await page.getByLabel('Cause').selectOption('spec');
  await grid.getByText('this placement was created').waitFor();
  await page.getByLabel('Until').fill('2020-01-01T00:00');
  await page.getByText('No decision that the history keeps matches').waitFor();
  await page.getByRole('button', { name: 'Show all' }).first().click();
  await grid.getByRole('link', { name: 'vault/gold' }).first().waitFor();
  // With the keyboard, to the first decision of one object, and back.
  await page.evaluate(() => { location.hash = '#/decision/placement/shop/web?tab=history'; });
  const own = page.getByRole('grid', { name: 'history' });
  await own.getByText('this placement was created').waitFor();
  await own.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText(/^As of/).waitFor();
  await page.getByText('What changed then').waitFor();
  assert.match(new URL(page.url()).hash, /at=\d+/);
  assert.match(await page.title(), /as it was/);
  assert.equal(await page.getByRole('tab', { name: 'Terraform' }).count(), 0, 'the spec of now is not that of then');
  await page.getByRole('link', { name: 'Back to now' }).click();
  await page.getByRole('tab', { name: 'Terraform' }).waitFor();
  // Every entry is explained by the clusters that it chose.
  const { items } = await api('v1/history?kind=placement&namespace=shop&name=web', { token: admin });
  for (const { revision, after } of items.slice(0, 4)) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/decision/placement/shop/web?at=${revision}`);
    await page.getByText(`at revision ${revision}`).waitFor();
    for (const name of after.clusters) await page.getByRole('row', { name: new RegExp(`${name}.*chosen`) }).waitFor();
  }
  // What the history does not have is said.
  await page.evaluate(() => { location.hash = '#/decision/placement/shop/web?at=2001-01-01T00:00:00Z'; });
  await page.getByRole('alert').waitFor();
  await page.getByRole('link', { name: 'Back to now' }).waitFor();
  await close(page, admin);
});

test('a decision that is deleted is found in the history, as it was', async () => {
  await api('v1/namespaces/shop/placements/brief', { token: admin, method: 'PUT', body: { spec: { number_of_clusters: 1, cluster_names: ['us-4'] } } });
  await fetch(`${process.env.UI_URL}/v1/namespaces/shop/placements/brief`, { method: 'DELETE', headers: { Authorization: `Bearer ${admin}` } });
  const page = await open(browser, { token: admin, fragment: '#/moves?object=shop%2Fbrief' });
  const row = page.getByRole('row', { name: /brief.*deleted/ }).first();
  await row.waitFor();
  await row.getByRole('link').click();
  await page.getByRole('status').getByText(/^As of/).waitFor();
  await page.getByRole('row', { name: /us-4.*chosen/ }).waitFor();
  await close(page, admin);
});

test('a freeze is begun and ended on the page, and what it holds says so', async () => {
  await setElectricity(usual);
  const page = await open(browser, { token: admin, fragment: '#/health' });
  await page.getByText('nothing is frozen').waitFor();
  await page.getByRole('button', { name: 'Freeze…' }).click();
  await page.getByLabel('Reason').fill('<b>incident</b> 42');
  await page.getByLabel('Namespaces').fill('shop');
  await accessible(page, 'the form of a freeze');
  await page.getByRole('button', { name: 'Freeze shop' }).click();
  await page.getByText('<b>incident</b> 42').waitFor();
  await page.getByRole('link', { name: 'frozen' }).waitFor();
  await picture(page, 'frozen');
  await setElectricity({ ...usual, 'eu-1': 99, 'eu-2': 98 });
  await page.evaluate(() => { location.hash = '#/decisions'; });
  const row = page.getByRole('row', { name: /shop\/web.*held/ });
  await row.waitFor();
  assert.match(await row.textContent(), /freeze \(<b>incident<\/b> 42\) until .*, else eu-3/);
  await accessible(page, 'a held decision in the table');
  await row.getByRole('link').first().click();
  await page.getByRole('heading', { name: /The move is held/ }).waitFor();
  const held = page.getByRole('region', { name: /The move is held/ });
  assert.match(await held.textContent(), /a freeze: <b>incident<\/b> 42.*in (\d+ min|1 h).*eu-3/);
  await accessible(page, 'a held decision');
  await picture(page, 'held');
  // Who may not thaw is told so.
  const other = await open(browser, { token: viewer, fragment: '#/health' });
  await other.getByRole('button', { name: /^Thaw/ }).click();
  await other.getByRole('button', { name: 'Thaw namespace shop now' }).click();
  await other.getByRole('alert').waitFor();
  await other.getByRole('button', { name: /Thaw|Freeze/ }).first().waitFor({ state: 'detached' });
  await close(other, viewer);
  await page.evaluate(() => { location.hash = '#/health'; });
  await page.getByRole('button', { name: /^Thaw/ }).click();
  await page.getByRole('button', { name: 'Thaw namespace shop now' }).click();
  await page.getByText('nothing is frozen').waitFor();
  await page.evaluate(() => { location.hash = '#/decision/placement/shop/web'; });
  await page.getByRole('row', { name: /eu-3.*chosen/ }).waitFor();
  await page.getByRole('heading', { name: /The move is held/ }).waitFor({ state: 'detached' });
  await setElectricity(usual);
  await close(page, admin);
});

test('a step of a rollout is approved by its name, by those who may', async () => {
  const other = await open(browser, { token: viewer, fragment: '#/decisions?search=shop/staged' });
  await other.getByRole('row', { name: /staged.*step 1 of 1/ }).waitFor();
  await other.evaluate(() => { location.hash = '#/decision/placement/shop/staged'; });
  await other.getByRole('button', { name: 'Approve step 1 of 1: to us-3' }).click();
  await other.getByRole('alert').waitFor();
  await other.getByRole('button', { name: /^Approve/ }).waitFor({ state: 'detached' });
  await close(other, viewer);
  const page = await open(browser, { token: admin, fragment: '#/decision/placement/shop/staged' });
  const rollout = page.getByRole('region', { name: /^Rollout/ });
  await rollout.getByText('waits for approval').waitFor();
  assert.match(await rollout.textContent(), /Stands.*us-2.*Meant.*us-3/);
  const approve = rollout.getByRole('button', { name: 'Approve step 1 of 1: to us-3' });
  await approve.focus();
  await page.keyboard.press('Enter');
  await rollout.waitFor({ state: 'detached' });
  await page.getByRole('row', { name: /us-3.*chosen/ }).waitFor();
  await close(page, admin);
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
  await press('ArrowRight');
  await page.getByRole('grid', { name: 'history' }).waitFor();
  await press('ArrowRight');
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
  await api('v1/freeze', { token: admin, method: 'POST', body: { reason: attack, namespaces: ['hostile'] } });
  const page = await open(browser, { token: admin });
  const fragments = [...Object.values(views).map((v) => v.fragment), '#/fleet?cluster=hostile&group=provider', '#/fleet?group=region&as=table&cluster=hostile', '#/decision/placement/shop/hostile', '#/decision/placement/shop/hostile?tab=spec', '#/decision/placement/shop/hostile?tab=json',
    '#/decision/workload/shop/hostile?tab=spec', '#/what-if?without=hostile&taint=<img src=x onerror=xss()>=a:b', '#/<img src=x onerror=xss()>', '#/fleet?find=<script>xss()</script>&group=label:<b>x</b>', '#/health?only=failing',
    '#/moves?object=shop%2Fhostile', '#/moves?object=<img src=x onerror=xss()>&cluster=<b>x</b>&since=<b>', '#/decision/placement/shop/hostile?tab=history', '#/decision/placement/shop/web?at=<img src=x onerror=xss()>'];
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
