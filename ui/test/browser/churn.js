// The memory of the page while decisions move all the time. UI_MINUTES says for how long.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, close, launch, memoryOf, open } from './browser.js';

const minutes = Number(process.env.UI_MINUTES);
const clusters = Number(process.env.UI_CLUSTERS);
const views = ['#/fleet', '#/moves', '#/decisions?sort=-scheduled_at', '#/decision/placement/shop/p1', '#/health', '#/fleet?group=label:group'];

// shuffle gives every cluster another value of its metric, so that many placements move.
async function shuffle(round) {
  const metrics = {};
  for (let i = 0; i < clusters; i++) metrics[`c${i}`] = (i * 37 + round * 61) % 101;
  await api('v1/metrics-providers/static?wait=0s', { method: 'PUT', body: { spec: { type: 'static', static: { metrics } } } });
}

test('the memory stays as it is', { timeout: (minutes + 10) * 60_000 }, async () => {
  const browser = await launch();
  const page = await open(browser);
  const memory = await memoryOf(page);

  const series = [];
  const moved = async () => (await api('v1/decisions?sort=-scheduled_at&limit=1')).items[0]?.scheduled_at;
  const first = await moved();
  let round = 0;
  for (let minute = 0; minute <= minutes; minute++) {
    const end = Date.now() + 60_000;
    for (const view of views) {
      await page.evaluate((h) => { location.hash = h; }, view);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      const next = Math.min(end, Date.now() + 60_000 / views.length);
      do {
        await shuffle(round++);
        await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 500); }));
      } while (Date.now() < next);
    }
    await page.evaluate((h) => { location.hash = h; }, views[0]);
    await page.quiet();
    const { used, nodes } = await memory();
    series.push(used);
    console.log(`# minute ${minute}: ${used.toFixed(1)} MiB, ${nodes} nodes, ${round} changes`);
  }
  assert.notEqual(await moved(), first, 'nothing has moved');
  // The first minute fills what the page keeps: objects, and the latest moves.
  const [begin, last] = [Math.max(...series.slice(0, 5)), Math.max(...series.slice(-5))];
  console.log(`# most of the first five minutes: ${begin.toFixed(1)} MiB, of the last five: ${last.toFixed(1)} MiB`);
  assert.ok(last < begin * 1.2 + 2, 'the memory grows');
  await close(page);
  await browser.close();
});
