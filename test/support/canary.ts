import { open, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** Forms in which a secret could slip out: as it is, base64 in each alignment, hex in either case, and either half. */
export function formsOf(secret: string): readonly string[] {
  const half = Math.floor(secret.length / 2);
  const aligned = [0, 1, 2].map((shift) => {
    const text = Buffer.from(' '.repeat(shift) + secret).toString('base64');
    // Without the characters that neighbours share in.
    return text.slice(shift === 0 ? 0 : 4, -4);
  });
  const hex = Buffer.from(secret).toString('hex');
  return [secret, ...aligned, hex, hex.toUpperCase(), secret.slice(0, half), secret.slice(half)];
}

/** The forms that stand in a text or in bytes. */
export function foundIn(where: string | Buffer, forms: readonly string[]): readonly string[] {
  const bytes = typeof where === 'string' ? Buffer.from(where) : where;
  return forms.filter((form) => bytes.includes(form, 0, 'latin1') || bytes.includes(form, 0, 'utf16le'));
}

/** Files below a folder that hold one of the forms. */
export async function filesWith(folder: string, forms: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    if (foundIn(await readFile(file), forms).length > 0) found.push(file);
  }
  return found;
}

/** Copies of any of the forms in the writable memory of a process (Linux). */
export async function copiesInMemory(pid: number, forms: readonly string[]): Promise<number> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  const step = 16 * 1024 * 1024;
  const overlap = 1024;
  const bytes = Buffer.allocUnsafeSlow(step + overlap);
  let found = 0;
  for (const line of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
    if (match === null) continue;
    const [from, to] = [Number.parseInt(match[1] ?? '0', 16), Number.parseInt(match[2] ?? '0', 16)];
    for (let at = from; at < to; at += step) {
      const wanted = Math.min(step + overlap, to - at);
      const read = await memory.read(bytes, 0, wanted, at).catch(() => null);
      if (read === null) continue;
      const view = bytes.subarray(0, read.bytesRead);
      for (const form of forms) {
        let hit = view.indexOf(form, 0, 'latin1');
        while (hit >= 0 && hit < step) {
          found++;
          hit = view.indexOf(form, hit + 1, 'latin1');
        }
      }
    }
  }
  await memory.close();
  return found;
}
