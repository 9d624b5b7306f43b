// The licences of everything that is bundled: most of them ask for their text to travel with each copy.
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';

/** The folder of the package that a file belongs to; null for files of our own. */
function packageFolder(file) {
  const at = file.replaceAll(path.sep, '/').lastIndexOf('/node_modules/');
  if (at < 0) return null;
  const rest = file.slice(at + '/node_modules/'.length).split(/[\\/]/);
  const name = rest.slice(0, rest[0].startsWith('@') ? 2 : 1);
  return path.join(file.slice(0, at), 'node_modules', ...name);
}

/**
 * @param {Iterable<string>} files absolute paths of the modules that went into the bundles
 * @returns {string} one entry a package, in the order of names
 * @throws Error for a package that states no licence
 */
export function notices(files) {
  const folders = new Set();
  for (const file of files) {
    const folder = packageFolder(file);
    if (folder !== null && existsSync(path.join(folder, 'package.json'))) folders.add(realpathSync(folder));
  }
  const entries = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    if (typeof license !== 'string') throw new Error(`${name} states no licence`);
    const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
    const text = texts.map((file) => readFileSync(path.join(folder, file), 'utf8').trim()).join('\n\n');
    return { title: `${name} ${version} (${license})`, text };
  });
  entries.sort((a, b) => (a.title < b.title ? -1 : 1));
  const rule = '-'.repeat(80);
  return entries.map(({ title, text }) => `${rule}\n${title}\n\n${text}`.trimEnd()).join('\n\n');
}
