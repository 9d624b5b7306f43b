// out/enrol/: what a machine that joins is given. `agent.tar.gz` holds out/agent as it runs there; the two scripts carry its
// checksum and those of everything else that they fetch, so that a release is one set of bytes.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { root } from './stale.mjs';

const BLOCK = 512;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** One entry of a tar archive (ustar), without owner, group or time: the same file is the same bytes wherever it was built. */
function entry(name, bytes) {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name}: the name is too long for the agent's archive`);
  const head = Buffer.alloc(BLOCK);
  const put = (at, text) => head.write(text, at, 'latin1');
  const octal = (at, width, value) => put(at, `${value.toString(8).padStart(width - 1, '0')}\0`);
  head.write(name, 0);
  octal(100, 8, 0o644);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, bytes.length);
  octal(136, 12, 0);
  put(148, '        ');
  put(156, '0');
  put(257, 'ustar\x0000');
  octal(
    148,
    7,
    head.reduce((sum, byte) => sum + byte, 0),
  );
  return [head, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)];
}

/** @returns {Map<string, Buffer>} the files below `folder` by their names; `takes(name)` says which */
export function filesOf(folder, takes) {
  const names = readdirSync(folder, { recursive: true })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => takes(name) && statSync(path.join(folder, name)).isFile());
  return new Map(names.map((name) => [name, readFileSync(path.join(folder, name))]));
}

/** @returns {Buffer} them as .tar.gz: sorted, time 0 */
export function archive(files) {
  const blocks = [...files.keys()].sort().flatMap((name) => entry(name, files.get(name)));
  const packed = gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 9 });
  packed[9] = 255; // the system that packed it: unknown, or the bytes would differ from one to the next
  return packed;
}

/** The constants of the scripts, by the names that stand between `@` in them. */
export function constants({ node, ollama }, version, agent) {
  const known = new Map([
    ['AGENT_VERSION', version],
    ['AGENT_SHA256', sha256(agent)],
    ['NODE_VERSION', node.version],
    ['OLLAMA_VERSION', ollama.version],
  ]);
  for (const [platform, file] of Object.entries(node.files)) {
    const name = `NODE_${platform.replace('-', '_').toUpperCase()}`;
    known.set(`${name}_URL`, file.url).set(`${name}_SHA256`, file.sha256).set(`${name}_FOLDER`, file.folder);
  }
  return known;
}

/** @throws Error for a name that has no value, or a value that could end the quotes around it */
export function fill(text, known) {
  return text.replace(/@([A-Z0-9_]+)@/g, (_, name) => {
    const value = known.get(name);
    if (value === undefined || !/^[A-Za-z0-9._:/-]+$/.test(value)) throw new Error(`no usable value for @${name}@`);
    return value;
  });
}

/** Writes out/enrol/ from out/agent, which must be there; `notices`: the licences of what is bundled in it. */
export function writeEnrolment(notices, out = path.join(root, 'out')) {
  const from = (name) => readFileSync(path.join(root, 'assets', 'enrol', name), 'utf8');
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  // The built-in encoder stays out: its packages weigh more than all the rest, and a machine joins to serve an engine.
  const files = filesOf(path.join(out, 'agent'), (name) => !name.endsWith('.map'));
  files.set('LICENSE.txt', readFileSync(path.join(root, 'LICENSE')));
  files.set('third-party-notices.txt', Buffer.from(notices));
  const agent = archive(files);
  const known = constants(JSON.parse(from('pins.json')), version, agent);
  const folder = path.join(out, 'enrol');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'agent.tar.gz'), agent);
  writeFileSync(path.join(folder, 'sh'), fill(from('install.sh'), known));
  writeFileSync(path.join(folder, 'ps1'), fill(from('install.ps1'), known));
}
