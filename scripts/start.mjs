// `npm start`: the desktop where an Electron runtime and a display exist, else the same control plane headless with its
// console in a browser; it says which and why. `--run agent` starts an agent instead. Rebuilds first when sources changed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isStale, root } from './stale.mjs';

const args = process.argv.slice(2);

/** Removes `flag` (and its value) from the arguments that the started program sees. */
function take(flag, withValue) {
  const at = args.indexOf(flag);
  if (at < 0) return undefined;
  const [, value] = args.splice(at, withValue ? 2 : 1);
  return withValue ? value : true;
}

/** @returns {{ runtime: string } | { why: string }} the Electron binary to use, or a sentence why there is none. */
function findDesktop() {
  if (take('--headless', false)) return { why: 'headless was asked for' };
  const hasDisplay = process.platform !== 'linux' || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (!hasDisplay) return { why: 'there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)' };
  try {
    const override = process.env.ELECTRON_OVERRIDE_DIST_PATH;
    const runtime = override ? path.join(override, 'electron') : createRequire(import.meta.url)('electron');
    if (existsSync(runtime)) return { runtime };
  } catch {
    // its module says by an error that its binary was never fetched
  }
  return { why: 'the Electron runtime is not installed (install it once with: npx install-electron)' };
}

if (isStale()) {
  console.error('Building Switchyard, because its sources are newer than the last build…');
  const built = spawnSync(process.execPath, [fileURLToPath(new URL('build.mjs', import.meta.url))], {
    stdio: ['ignore', 2, 2],
  });
  if (built.status !== 0) process.exit(built.status ?? 1);
}

if (take('--run', true) === 'agent') {
  process.argv.splice(2, process.argv.length, ...args);
  await import(new URL('../out/agent/index.js', import.meta.url).href);
} else {
  const desktop = findDesktop();
  if ('runtime' in desktop) {
    const app = spawn(desktop.runtime, [root, ...args], { stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => app.kill(signal));
    app.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 0)));
  } else {
    if (!['--json', '--help', '-h', '--version'].some((flag) => args.includes(flag))) {
      console.error(`Switchyard starts headless: ${desktop.why}.`);
    }
    process.argv.splice(2, process.argv.length, ...args);
    await import(new URL('../out/main/headless.js', import.meta.url).href);
  }
}
