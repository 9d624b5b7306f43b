import { join } from 'node:path';
import { z } from 'zod';
import { MAX_CONTROLLERS } from './controllers.ts';
import { readSecretFile, writeSecretFile } from './files.ts';

const FILE = 'acquaintances.json';
/** A live session is noted this often. */
const NOTED_EVERY_MS = 10 * 60_000;

const time = z.number().nonnegative().nullable();
const Stored = z.object({
  v: z.literal(1),
  controllers: z
    .array(z.object({ id: z.string().max(64), pairedAtMs: time, lastSeenAtMs: time }))
    .max(MAX_CONTROLLERS * 4),
});

export interface Acquaintance {
  /** Milliseconds since the Unix epoch; null: not known. */
  readonly pairedAtMs: number | null;
  readonly lastSeenAtMs: number | null;
}

const UNKNOWN: Acquaintance = { pairedAtMs: null, lastSeenAtMs: null };

/**
 * When control planes were paired and last seen, for people. In a file of its own, which only the running agent writes: the keys'
 * file is written by `agent controllers rm` too, and a note must never bring a removed one back.
 */
export class Acquaintances {
  readonly #path: string;
  readonly #known: Map<string, Acquaintance>;
  #writes: Promise<void> = Promise.resolve();

  private constructor(path: string, known: Map<string, Acquaintance>) {
    this.#path = path;
    this.#known = known;
  }

  /** What cannot be read is not known: it is only shown. */
  static async load(folder: string): Promise<Acquaintances> {
    const path = join(folder, FILE);
    const known = new Map<string, Acquaintance>();
    try {
      const { controllers } = Stored.parse(JSON.parse((await readSecretFile(path)) ?? ''));
      for (const { id, ...times } of controllers) known.set(id, times);
    } catch {
      // Never paired, or damaged.
    }
    return new Acquaintances(path, known);
  }

  of(id: string): Acquaintance {
    return this.#known.get(id) ?? UNKNOWN;
  }

  paired(id: string, wallMs: number): void {
    this.#known.set(id, { pairedAtMs: wallMs, lastSeenAtMs: null });
    this.#store();
  }

  seen(id: string, wallMs: number): void {
    const before = this.of(id);
    if (before.lastSeenAtMs !== null && Math.abs(wallMs - before.lastSeenAtMs) < NOTED_EVERY_MS) return;
    this.#known.set(id, { ...before, lastSeenAtMs: wallMs });
    this.#store();
  }

  removed(id: string): void {
    if (this.#known.delete(id)) this.#store();
  }

  /** Resolves when everything noted so far is on the disk, or could not be written. */
  settled(): Promise<void> {
    return this.#writes;
  }

  #store(): void {
    const controllers = [...this.#known].map(([id, times]) => ({ id, ...times }));
    const content = JSON.stringify({ v: 1, controllers });
    this.#writes = this.#writes.then(() => writeSecretFile(this.#path, content)).catch(() => undefined);
  }
}
