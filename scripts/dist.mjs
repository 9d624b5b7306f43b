// `npm run dist`: a fresh build, then installers into dist/ for the system it runs on, or for those that the arguments name
// (they go to electron-builder: `-- --linux deb`, `-- --win --x64`, `-- --dir`). Nothing is published.
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
const publish = feed === undefined ? [] : ['-c.publish.provider=generic', `-c.publish.url=${feed}`];
const builder = path.join(createRequire(import.meta.url).resolve('electron-builder/package.json'), '..', 'cli.js');

for (const [script, ...args] of [
  [path.join(root, 'scripts', 'build.mjs')],
  [builder, ...process.argv.slice(2), ...publish, '--publish', 'never'],
]) {
  const { status } = spawnSync(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit' });
  if (status === 0) continue;
  if (script === builder) {
    console.error(
      '\nElectron and the tools for installers are fetched from GitHub on the first run; docs/packaging.md says how to',
    );
    console.error('do without (-c.electronDist=FOLDER for Electron, USE_SYSTEM_FPM=true for the .deb).');
  }
  process.exit(status ?? 1);
}
