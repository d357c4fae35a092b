// Bundles the page into dist: index.html, and its program, style and icon under names with their hashes.
import { build } from 'esbuild';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

const root = import.meta.dirname;
const dist = path.join(root, 'dist');

for (const name of await readdir(dist)) {
  if (!name.startsWith('.')) await rm(path.join(dist, name));
}
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { app: 'src/main.js', style: 'src/style.css', icon: 'src/icon.svg' },
  outdir: 'dist',
  entryNames: '[name]-[hash]',
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome111', 'firefox115', 'safari16.4'],
  loader: { '.svg': 'copy' },
  metafile: true,
  // Licences of what is bundled.
  legalComments: 'eof',
});

const outputs = Object.keys(metafile.outputs).map((file) => path.basename(file));
const named = (name) => outputs.find((file) => file.startsWith(`${name}-`));
const page = (await readFile(path.join(root, 'src/index.html'), 'utf8'))
  .replace('{app}', `ui/${named('app')}`).replace('{style}', `ui/${named('style')}`).replace('{icon}', `ui/${named('icon')}`);

let total = 0;
for (const file of outputs) total += gzipSync(await readFile(path.join(dist, file)), { level: 9 }).length;
// Last: a server without it says that the page was not built.
await writeFile(path.join(dist, 'index.html'), page);
console.log(`ui: ${(total / 1024).toFixed(1)} KiB compressed`);
