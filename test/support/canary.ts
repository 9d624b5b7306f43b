import { open, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** Forms in which a secret could slip out: whole or either half, each as it is, as base64 in each alignment, and as hex in either case. */
export function formsOf(secret: string): readonly string[] {
  const half = Math.floor(secret.length / 2);
  const parts = [secret, secret.slice(0, half), secret.slice(half)];
  return [...parts, ...parts.flatMap(encodedFormsOf)];
}

function encodedFormsOf(part: string): readonly string[] {
  const aligned = [0, 1, 2].map((shift) => {
    const text = Buffer.from(' '.repeat(shift) + part).toString('base64');
    // Without the characters that neighbours share in.
    return text.slice(shift === 0 ? 0 : 4, -4);
  });
  const hex = Buffer.from(part).toString('hex');
  return [...aligned, hex, hex.toUpperCase()];
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

/** One place in a process's memory that holds a form. */
export interface MemoryPlace {
  readonly form: string;
  readonly encoding: 'latin1' | 'utf16le';
  /** Line of `/proc/PID/maps`: what kind of memory it is. */
  readonly region: string;
  readonly offset: number;
  /** What lies around it, dots for what does not print: whose copy it is can mostly be read off. */
  readonly around: string;
}

const STEP_BYTES = 16 * 1024 * 1024;
const OVERLAP_BYTES = 4096;
const CONTEXT_BYTES = 96;

/** Places of any of the forms in the writable memory of a process (Linux). The first form and its parts also as two-byte characters. */
export async function placesInMemory(pid: number, forms: readonly string[]): Promise<readonly MemoryPlace[]> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  const bytes = Buffer.allocUnsafeSlow(STEP_BYTES + OVERLAP_BYTES);
  const found: MemoryPlace[] = [];
  // Whatever holds a whole holds its halves. Base64 and hex are made by code of this process, as one-byte strings.
  const least = forms.filter((form) => !forms.some((other) => other !== form && form.includes(other)));
  const needles = least.flatMap((form) => [
    { form, encoding: 'latin1' as const, needle: Buffer.from(form, 'latin1') },
    ...(forms[0]?.includes(form) === true
      ? [{ form, encoding: 'utf16le' as const, needle: Buffer.from(form, 'utf16le') }]
      : []),
  ]);
  for (const region of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(region);
    if (match === null) continue;
    const [from, to] = [Number.parseInt(match[1] ?? '0', 16), Number.parseInt(match[2] ?? '0', 16)];
    for (let at = from; at < to; at += STEP_BYTES) {
      const wanted = Math.min(STEP_BYTES + OVERLAP_BYTES, to - at);
      // A region may be gone since the map was read; one that is there is read to its end.
      const read = await memory.read(bytes, 0, wanted, at).catch(() => null);
      if (read === null) continue;
      const view = bytes.subarray(0, read.bytesRead);
      for (const { form, encoding, needle } of needles) {
        for (let hit = view.indexOf(needle); hit >= 0 && hit < STEP_BYTES; hit = view.indexOf(needle, hit + 1)) {
          const around = view.toString('latin1', Math.max(0, hit - CONTEXT_BYTES), hit + needle.length + CONTEXT_BYTES);
          found.push({
            form,
            encoding,
            region: region.replace(/\s+/g, ' '),
            offset: at + hit - from,
            around: around.replace(/[^\x20-\x7e]/g, '.'),
          });
        }
      }
    }
  }
  await memory.close();
  return found;
}
