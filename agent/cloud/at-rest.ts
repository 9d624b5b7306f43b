import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';

/** A key with what it belongs to. */
export interface RestingKey {
  readonly controller: string;
  readonly origin: string;
  readonly keyPush: number;
  readonly key: Buffer;
}

/** Where keys may rest encrypted. `put` and `remove` prepare at once and return the write. */
export interface AtRest {
  load(): Promise<readonly RestingKey[]>;
  put(entry: RestingKey): () => Promise<void>;
  remove(controller: string): () => Promise<void>;
}

export interface Keyring {
  readonly newest: number;
  readonly keys: ReadonlyMap<number, Buffer>;
}

const Entry = z.object({
  controller: z.string().max(128),
  origin: z.string().max(300),
  keyPush: z.number().int().min(0),
  version: z.number().int().min(1),
  nonce: z.string().max(32),
  sealed: z.string().max(1024),
});
type Entry = z.infer<typeof Entry>;
const Stored = z.object({ v: z.literal(1), entries: z.array(Entry).max(64) });

/**
 * `SWITCHYARD_KEYRING`: `2:<base64 32 bytes>,1:<base64>`; the highest version encrypts. Null when it is not set.
 * @throws RangeError for anything else, quoting nothing of it
 */
export function parseKeyring(text: string | undefined): Keyring | null {
  if (text === undefined || text.trim() === '') return null;
  const keys = new Map<number, Buffer>();
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,6}):([A-Za-z0-9+/]{43}=)\s*$/.exec(part);
    const version = Number(match?.[1] ?? 0);
    const key = Buffer.from(match?.[2] ?? '', 'base64');
    if (version < 1 || key.length !== 32 || key.toString('base64') !== match?.[2] || keys.has(version)) {
      throw new RangeError('SWITCHYARD_KEYRING must list VERSION:BASE64 of 32 bytes each, versions unique.');
    }
    keys.set(version, key);
  }
  return { newest: Math.max(...keys.keys()), keys };
}

/** Keys in one 0600 file, each sealed with AES-256-GCM and bound to its control plane, origin and push. */
export class SealedFile implements AtRest {
  readonly #path: string;
  readonly #keyring: Keyring;
  #entries = new Map<string, Entry>();

  constructor(path: string, keyring: Keyring) {
    this.#path = path;
    this.#keyring = keyring;
  }

  async load(): Promise<readonly RestingKey[]> {
    const text = await readFile(this.#path, 'utf8').catch(() => null);
    const stored = text === null ? null : Stored.safeParse(parsed(text));
    if (stored === null || !stored.success) return [];
    const opened: RestingKey[] = [];
    for (const entry of stored.data.entries) {
      const key = this.#open(entry);
      if (key === null) continue;
      this.#entries.set(entry.controller, entry);
      opened.push({ controller: entry.controller, origin: entry.origin, keyPush: entry.keyPush, key });
    }
    return opened;
  }

  put(entry: RestingKey): () => Promise<void> {
    const { newest, keys } = this.#keyring;
    const nonce = randomBytes(12);
    const { controller, origin, keyPush } = entry;
    const head = { controller, origin, keyPush, version: newest };
    const cipher = createCipheriv('aes-256-gcm', keys.get(newest) ?? Buffer.alloc(0), nonce, { authTagLength: 16 });
    cipher.setAAD(aad(head));
    const sealed = Buffer.concat([cipher.update(entry.key), cipher.final(), cipher.getAuthTag()]);
    this.#entries.set(controller, { ...head, nonce: nonce.toString('base64'), sealed: sealed.toString('base64') });
    return () => this.#write();
  }

  remove(controller: string): () => Promise<void> {
    this.#entries.delete(controller);
    return () => this.#write();
  }

  #open(entry: Entry): Buffer | null {
    const secret = this.#keyring.keys.get(entry.version);
    const sealed = Buffer.from(entry.sealed, 'base64');
    if (secret === undefined || sealed.length < 17) return null;
    try {
      const decipher = createDecipheriv('aes-256-gcm', secret, Buffer.from(entry.nonce, 'base64'), {
        authTagLength: 16,
      });
      decipher.setAAD(aad(entry));
      decipher.setAuthTag(sealed.subarray(-16));
      const first = decipher.update(sealed.subarray(0, -16));
      const rest = decipher.final();
      const key = Buffer.allocUnsafeSlow(first.length + rest.length);
      key.set(first);
      key.set(rest, first.length);
      first.fill(0);
      return key;
    } catch {
      return null;
    }
  }

  /** A new file moved over the old one: after a crash one of the two is whole. */
  async #write(): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ v: 1, entries: [...this.#entries.values()] } satisfies z.infer<typeof Stored>);
    const fresh = `${this.#path}.new`;
    await writeFile(fresh, text, { mode: 0o600, flush: true });
    await chmod(fresh, 0o600);
    await rename(fresh, this.#path);
  }
}

function aad(head: Pick<Entry, 'controller' | 'origin' | 'keyPush' | 'version'>): Buffer {
  const parts = ['switchyard cloud key', head.controller, head.origin, String(head.keyPush), String(head.version)];
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
