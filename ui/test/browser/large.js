// How the page does with a large fleet, for BenchmarkLargePage in internal/integration: each line of the output is a name and
// a value. The placement shop/watched moves between the clusters "left" and "right" with the metrics of the provider
// "watched".
import { api, launch, url } from './browser.js';

const churn = Number(process.env.UI_CHURN ?? 60); // seconds
const report = (name, value) => console.log(`${name} ${value}`);

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1360, height: 850 } });
const page = await context.newPage();
page.setDefaultTimeout(180_000);
const devtools = await context.newCDPSession(page);
// CPU time of the page's thread, not time that passes.
await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
const metrics = async () => Object.fromEntries((await devtools.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));

await page.addInitScript(() => {
  window.longest = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration); }).observe({ type: 'longtask', buffered: true });
  // When a piece of the watch that names the placement arrives, and when what it says is in a frame.
  window.waits = [];
  let arrived;
  const { read } = ReadableStreamDefaultReader.prototype;
  ReadableStreamDefaultReader.prototype.read = async function (...args) {
    const result = await read.apply(this, args);
    if (typeof result.value === 'string' && result.value.includes('"watched"')) arrived ??= performance.now();
    return result;
  };
  new MutationObserver(() => {
    if (arrived === undefined) return;
    const from = arrived;
    arrived = undefined;
    requestAnimationFrame(() => window.waits.push(performance.now() - from));
  }).observe(document, { subtree: true, childList: true, characterData: true });
});

// Nothing that a view shows is still to come, and all of it is in a frame.
const settled = async () => {
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true], .loading') && !document.body.innerText.includes('loading…'));
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
};

await page.goto(`${url}/ui#/fleet`);
await page.getByText(/10,00\d clusters/).waitFor();
await settled();
report('first-view-cpu-s', (await metrics()).TaskDuration);
report('first-view-longest-task-ms', await page.evaluate(() => window.longest));

// Each view, as somebody would go through them.
await page.evaluate(() => { window.longest = 0; });
for (const [fragment, heading] of [['#/decisions', 'Placements and workloads'], ['#/decision/placement/shop/watched', 'shop/watched'], ['#/moves', 'Moves'], ['#/fleet', 'Fleet'], ['#/moves', 'Moves']]) {
  await page.evaluate((hash) => { location.hash = hash; }, fragment);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  await settled();
}
report('views-longest-task-ms', await page.evaluate(() => window.longest));

let flips = 0;
const flip = () => {
  flips++;
  return api('v1/metrics-providers/watched?wait=0s', { method: 'PUT', body: { spec: { type: 'static', static: { metrics: { left: flips % 2 ? 30 : 10, right: 20 } } } } });
};
const move = async () => {
  const before = await page.evaluate(() => window.waits.length);
  await flip();
  await page.waitForFunction((n) => window.waits.length > n, before);
};
for (let i = 0; i < 30; i++) await move();
const waits = (await page.evaluate(() => window.waits)).toSorted((a, b) => a - b);
report('event-to-frame-p50-ms', waits[Math.floor(waits.length / 2)]);
report('event-to-frame-max-ms', waits.at(-1));

// The list of moves has its full length before the memory is compared.
const heap = async () => {
  await devtools.send('HeapProfiler.collectGarbage');
  return (await metrics()).JSHeapUsedSize / 2 ** 20;
};
const until = async (end) => { while (Date.now() < end) await flip(); };
await page.evaluate(() => { window.longest = 0; });
await until(Date.now() + 1000 * churn / 2);
const halfway = await heap();
report('heap-halfway-MiB', halfway);
await until(Date.now() + 1000 * churn / 2);
const end = await heap();
report('heap-end-MiB', end);
report('churn-longest-task-ms', await page.evaluate(() => window.longest));
report('churn-moves', flips);
await browser.close();
// A page that keeps what it was told would have twice as much.
if (end > 1.5 * halfway) throw new Error(`the page grows: ${halfway} MiB after half of the time, ${end} MiB after all of it`);
