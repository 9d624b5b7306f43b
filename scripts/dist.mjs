// `npm run dist`: a fresh build, then installers into dist/ for the system it runs on, or for those that the arguments name
// (they go to electron-builder: `-- --linux deb`, `-- --win --x64`, `-- --dir`). Nothing is published. With `--prebuilt` it packs
// out/ as it is.
// SWITCHYARD_UPDATE_URL: where copies made here will ask for updates; none: they will not ask.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { root } from './stale.mjs';

const feed = process.env.SWITCHYARD_UPDATE_URL;
if (feed !== undefined && !(URL.canParse(feed) && new URL(feed).protocol === 'https:')) {
  console.error('SWITCHYARD_UPDATE_URL takes an https address.');
  process.exit(1);
}
const args = process.argv.slice(2).filter((arg) => arg !== '--prebuilt');
const isPrebuilt = args.length < process.argv.length - 2;
const publish = feed === undefined ? [] : ['-c.publish.provider=generic', `-c.publish.url=${feed}`];
const builder = path.join(createRequire(import.meta.url).resolve('electron-builder/package.json'), '..', 'cli.js');

/** Runs a script of Node's; a failure ends this one with its status, after `hint`. */
function run(hint, script, ...rest) {
  const { status } = spawnSync(process.execPath, [script, ...rest], { cwd: root, stdio: 'inherit' });
  if (status === 0) return;
  if (hint) console.error(hint);
  process.exit(status ?? 1);
}

if (!isPrebuilt) run('', path.join(root, 'scripts', 'build.mjs'));
const hint = `
Electron and the tools that make installers are fetched from GitHub on the first run. docs/packaging.md says how to do without.`;
run(hint, builder, ...args, ...publish, '--publish', 'never');
