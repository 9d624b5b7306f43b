// Runs after each target is packed, before fuses and signature: refuses a package that would start nowhere or carries too much.
const { existsSync, readdirSync } = require('node:fs');
const path = require('node:path');

/** electron-builder's numbers for architectures. */
const ARCHITECTURES = { 1: 'x64', 3: 'arm64' };

/** @returns {string[]} paths of native files below `folder`, relative to it, with forward slashes */
function nativeFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => file.endsWith('.node'))
    .sort();
}

/**
 * @param {string} resources the folder that holds app.asar
 * @param {string} platform darwin, linux or win32
 * @param {string} architecture x64 or arm64
 * @throws Error naming what is missing or too much
 */
function checkResources(resources, platform, architecture) {
  const wanted = `node_modules/better-sqlite3/prebuilds/${platform}-${architecture}.node`;
  const found = nativeFiles(path.join(resources, 'app.asar.unpacked'));
  if (found.length !== 1 || found[0] !== wanted) {
    throw new Error(`expected ${wanted} as the one native file, found: ${found.join(', ') || 'none'}`);
  }
  for (const file of ['index.js', 'builtin-worker.js', 'package.json']) {
    if (!existsSync(path.join(resources, 'agent', file))) throw new Error(`the agent has no ${file}`);
  }
  const foreign = nativeFiles(path.join(resources, 'agent'));
  if (foreign.length > 0) throw new Error(`the agent must run everywhere, but carries ${foreign.join(', ')}`);
}

exports.checkResources = checkResources;
exports.default = async ({ appOutDir, electronPlatformName, arch, packager }) => {
  const architecture = ARCHITECTURES[arch];
  if (architecture === undefined) throw new Error('Switchyard is packed for x64 and arm64, each on its own');
  const inside =
    electronPlatformName === 'darwin' ? `${packager.appInfo.productFilename}.app/Contents/Resources` : 'resources';
  checkResources(path.join(appOutDir, inside), electronPlatformName, architecture);
};
