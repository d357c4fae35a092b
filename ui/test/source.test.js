import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'node:test';

const directory = path.join(import.meta.dirname, '../src');
const forbidden = {
  'HTML from text': /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|DOMParser|srcdoc/,
  'programs from text': /\beval\b|new Function|setTimeout\(\s*['"`]|javascript:/,
  'anything that outlives the page, or a log': /localStorage|sessionStorage|indexedDB|document\.cookie|caches\.|console\./,
  'addresses of other servers': /https?:\/\/(?!www\.w3\.org\/2000\/svg)/,
};

test('the source has nothing that text could get through', async () => {
  const files = await readdir(directory);
  assert.ok(files.length > 15);
  for (const file of files) {
    const text = await readFile(path.join(directory, file), 'utf8');
    for (const [what, pattern] of Object.entries(forbidden)) {
      // What has to survive the way to an issuer and back, which is not the token: the test of logins looks.
      const allowed = file === 'login.js' ? text.replaceAll(/sessionStorage\.(setItem|getItem|removeItem)\(storageKey/g, '') : text;
      assert.ok(!pattern.test(allowed), `${file} has ${what}: ${pattern.exec(allowed)?.[0]}`);
    }
  }
});
