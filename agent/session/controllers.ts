import { timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { formatJoinCode, newJoinCode, parseJoinCode } from '../wire/joincode.ts';
import { readSecretFile, writeSecretFile } from './files.ts';

export const MAX_CONTROLLERS = 8;
export const NODE_KEY_BYTES = 32;

const FILE = 'controllers.json';
const Stored = z.object({
  v: z.literal(1),
  joinCode: z.string().max(32).nullable(),
  controllers: z
    .array(z.object({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), key: z.string().regex(/^[A-Za-z0-9_-]{43}$/) }))
    .max(MAX_CONTROLLERS),
});

/** Writes the state file; replaced by tests that fill the disk. */
export type WriteFile = (path: string, content: string) => Promise<void>;

export type PairOutcome = 'stored' | 'full' | 'code-gone';

interface State {
  readonly keys: ReadonlyMap<string, Buffer>;
  readonly code: Uint8Array | null;
}

/**
 * The paired control planes with their node keys, and the join code, in one file of mode 0600. One file, because storing a
 * key and burning its code must be one step: a crash between two files would leave a used code alive or a pairing lost.
 */
export class Controllers {
  readonly #path: string;
  readonly #write: WriteFile;
  #keys: Map<string, Buffer>;
  #code: Uint8Array | null;
  #writes: Promise<void> = Promise.resolve();

  private constructor(path: string, write: WriteFile, state: State) {
    this.#path = path;
    this.#write = write;
    this.#keys = new Map(state.keys);
    this.#code = state.code;
  }

  /** Rejects when the file is there but damaged: paired control planes must not be forgotten silently. */
  static async load(folder: string, write: WriteFile = writeSecretFile): Promise<Controllers> {
    const path = join(folder, FILE);
    return new Controllers(path, write, await readState(path));
  }

  get count(): number {
    return this.#keys.size;
  }

  ids(): string[] {
    return [...this.#keys.keys()];
  }

  /** Node key of a paired control plane. */
  key(id: string): Uint8Array | null {
    return this.#keys.get(id) ?? null;
  }

  /** The 10 bytes of the live join code. */
  code(): Uint8Array | null {
    return this.#code;
  }

  /** Replaces the join code: at once in memory, and stored when this resolves. */
  async newCode(): Promise<string> {
    const code = newJoinCode();
    this.#code = code;
    await this.#store(() => this.#state());
    return formatJoinCode(code);
  }

  /** Kills the join code at once; rejects when only memory knows. */
  async closeCode(): Promise<void> {
    this.#code = null;
    await this.#store(() => this.#state());
  }

  /**
   * Stores the node key of a control plane that proved `code`, and burns the code, in one write. On `stored` both are on the
   * disk; on a rejection nothing has changed, so that the code can be tried again.
   */
  async pair(id: string, key: Uint8Array, code: Uint8Array): Promise<PairOutcome> {
    let outcome: PairOutcome = 'stored';
    await this.#exclusive(async () => {
      if (this.#code === null || !timingSafeEqual(this.#code, code)) {
        outcome = 'code-gone';
      } else if (!this.#keys.has(id) && this.#keys.size >= MAX_CONTROLLERS) {
        outcome = 'full';
      } else {
        await this.#write(this.#path, encode({ keys: new Map(this.#keys).set(id, Buffer.from(key)), code: null }));
        this.#keys.set(id, Buffer.from(key));
        if (this.#code !== null && timingSafeEqual(this.#code, code)) this.#code = null;
      }
    });
    return outcome;
  }

  /**
   * Gives a control plane a node key without a join code: for the agent that its control plane starts itself and hands the
   * key over a pipe. Rejects with a RangeError when 8 others are there or the key is not 32 bytes.
   */
  async admit(id: string, key: Uint8Array): Promise<void> {
    if (key.length !== NODE_KEY_BYTES) throw new RangeError('A node key is 32 bytes.');
    if (!this.#keys.has(id) && this.#keys.size >= MAX_CONTROLLERS) throw new RangeError('8 control planes are paired.');
    await this.#store(() => ({ keys: new Map(this.#keys).set(id, Buffer.from(key)), code: this.#code }));
    this.#keys.set(id, Buffer.from(key));
  }

  /** Forgets a control plane: in memory before this returns; rejects when the disk did not follow. False: not paired. */
  async revoke(id: string): Promise<boolean> {
    const key = this.#keys.get(id);
    if (key === undefined) return false;
    key.fill(0);
    this.#keys.delete(id);
    await this.#store(() => this.#state());
    return true;
  }

  /** Takes over what another process (`agent code`, `agent controllers rm`) wrote. Resolves with the ids that are gone. */
  async reload(): Promise<string[]> {
    const gone: string[] = [];
    await this.#exclusive(async () => {
      const state = await readState(this.#path);
      for (const [id, key] of this.#keys) {
        const kept = state.keys.get(id);
        if (kept === undefined || !kept.equals(key)) gone.push(id);
      }
      this.#keys = new Map(state.keys);
      this.#code = state.code;
    });
    return gone;
  }

  #state(): State {
    return { keys: this.#keys, code: this.#code };
  }

  #store(state: () => State): Promise<void> {
    return this.#exclusive(() => this.#write(this.#path, encode(state())));
  }

  /** One write after the other, each with the state of its turn, so that an older state never replaces a newer one. */
  #exclusive(task: () => Promise<void>): Promise<void> {
    const done = this.#writes.then(task);
    this.#writes = done.catch(() => undefined);
    return done;
  }
}

function encode(state: State): string {
  return JSON.stringify({
    v: 1,
    joinCode: state.code === null ? null : formatJoinCode(state.code),
    controllers: [...state.keys].map(([id, key]) => ({ id, key: key.toString('base64url') })),
  });
}

async function readState(path: string): Promise<State> {
  const content = await readSecretFile(path);
  if (content === null) return { keys: new Map(), code: null };
  try {
    const stored = Stored.parse(JSON.parse(content));
    return {
      keys: new Map(stored.controllers.map(({ id, key }) => [id, Buffer.from(key, 'base64url')])),
      code: stored.joinCode === null ? null : parseJoinCode(stored.joinCode),
    };
  } catch {
    // The parsers' own messages quote the file, and the file holds keys.
    throw new Error(`${path} is damaged. Restore it, or remove it and pair every control plane again.`);
  }
}
