// The page of a server that has nothing yet, and needs no token.
import { after, before, test } from 'node:test';
import { accessible, close, launch, open } from './browser.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test('where there is nothing yet, the page says what to do', async () => {
  const page = await open(browser);
  for (const [fragment, text] of [
    ['#/fleet', 'There are no clusters yet'], ['#/decisions', 'Nothing is placed yet'], ['#/moves', 'Nothing has moved yet'], ['#/what-if', 'Ask before it happens'], ['#/health', 'No metrics are defined'],
    ['#/decision/placement/shop/none', 'does not exist'], ['#/decision/other/shop/none', 'names no placement'], ['#/nowhere', 'There is no such view'],
  ]) {
    await page.evaluate((hash) => { location.hash = hash; }, fragment);
    await page.getByText(text).first().waitFor();
    await accessible(page, fragment);
  }
  await close(page);
});
