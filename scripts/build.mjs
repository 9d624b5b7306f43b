// Bundles main, preload and agent with esbuild and the renderer with Vite into out/.
// `--if-stale` does nothing when no source is newer than the last build: `npm ci` (prepare) and `npm start` call it so.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { writeEnrolment } from './enrol-archive.mjs';
import { notices } from './notices.mjs';
import { isStale, root, stamp } from './stale.mjs';

const at = (...parts) => path.join(root, ...parts);
const withoutRenderer = process.argv.includes('--no-renderer');

// Native or optional packages stay outside the bundles; everything else is inside, so a start reads few files.
const external = ['electron', 'better-sqlite3', '@energetic-ai/*'];
const banner = {
  js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
};
/** Zod brings its messages in fifty languages, a third of its code; none of them is ever shown. */
const english = {
  name: 'zod-in-english',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};
const node = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  sourcemap: true,
  metafile: true,
  absWorkingDir: root,
  logLevel: 'warning',
  external,
  plugins: [english],
};

/**
 * One ESM bundle per Node entry that exists; one CJS file for the sandboxed preload.
 * @returns {Promise<string[]>} absolute paths of the modules that went in
 */
export async function buildNode() {
  const entries = {
    'main/index': 'main/index.ts',
    'main/headless': 'main/headless.ts',
    'main/store-worker': 'main/store/worker.ts',
    'agent/builtin-worker': 'agent/builtin/worker.ts',
    'agent/gpu-inventory': 'agent/gpu/inventory-worker.ts',
  };
  const present = Object.entries(entries).filter(([, file]) => existsSync(at(file)));
  const results = await Promise.all([
    // In parts, so that an agent holds in memory what it needs: no certificates to make, no cloud before there is a key.
    existsSync(at('agent/index.ts')) &&
      build({
        ...node,
        format: 'esm',
        banner,
        splitting: true,
        outdir: at('out/agent'),
        chunkNames: 'part-[hash]',
        entryPoints: [at('agent/index.ts')],
      }),
    build({
      ...node,
      format: 'esm',
      banner,
      outdir: at('out'),
      entryPoints: present.map(([out, file]) => ({ in: at(file), out })),
    }),
    existsSync(at('preload/index.ts')) &&
      build({ ...node, format: 'cjs', entryPoints: [at('preload/index.ts')], outfile: at('out/preload/index.cjs') }),
  ]);
  // Parts are named by their contents: those of earlier builds would stay for ever.
  const written = new Set(results.flatMap((result) => (result ? Object.keys(result.metafile.outputs) : [])));
  for (const file of readdirSync(at('out/agent'))) {
    if (file.startsWith('part-') && !written.has(`out/agent/${file}`)) rmSync(at('out/agent', file));
  }
  // One character beyond Latin-1, in a comment, and V8 holds all of a file in memory with two bytes for each of its characters.
  for (const file of written) {
    if (!file.endsWith('.js')) continue;
    const text = readFileSync(at(file), 'utf8');
    const plain = text.replace(/[^\0-\xff]/g, '-');
    if (plain !== text) writeFileSync(at(file), plain);
  }
  // The agent's folder also stands alone: in the packaged app, and on the machines that it is installed on.
  const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const own = { name: 'switchyard-agent', version, private: true, type: 'module' };
  writeFileSync(at('out/agent/package.json'), `${JSON.stringify(own)}\n`);
  return results.flatMap((result) => (result ? Object.keys(result.metafile.inputs).map((file) => at(file)) : []));
}

/** @returns {Promise<string[]>} absolute paths of the modules that went in */
async function buildRenderer() {
  if (!existsSync(at('vite.config.ts'))) return [];
  process.env.NODE_ENV = 'production'; // development builds of React leak memory under charts that run for days
  const vite = await import('vite');
  const { output } = await vite.build({ root: at('renderer'), configFile: at('vite.config.ts'), logLevel: 'warn' });
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !(process.argv.includes('--if-stale') && !isStale())) {
  const [inNode, inRenderer] = await Promise.all([buildNode(), withoutRenderer ? [] : buildRenderer()]);
  if (!withoutRenderer) writeFileSync(at('out/third-party-notices.txt'), `${notices([...inNode, ...inRenderer])}\n`);
  writeEnrolment(`${notices(inNode)}\n`);
  writeFileSync(stamp, `${new Date().toISOString()}\n`);
}
