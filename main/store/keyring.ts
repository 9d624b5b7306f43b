import { SwitchyardError } from '../domain/errors.ts';

const KEY_BYTES = 32;
const MAX_VERSION = 0xffff_ffff;

export interface KeyringEntry {
  /** 1 to 2^32 - 1. The highest one seals, the others open. */
  readonly version: number;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** Says which entry is wrong and how, never what it holds: half a key in a log is half a key lost. */
function refuse(origin: string, detail: string): SwitchyardError {
  return new SwitchyardError('vault_locked', `${origin} cannot be used: ${detail}`);
}

/** The keys of the vault by version. */
export class Keyring {
  readonly #keys: ReadonlyMap<number, Uint8Array>;
  readonly newest: KeyringEntry;

  /** Entries must be valid; use `parse` for text. */
  constructor(entries: readonly KeyringEntry[]) {
    this.#keys = new Map(entries.map(({ version, key }) => [version, Uint8Array.from(key)]));
    const newest = [...entries].sort((a, b) => b.version - a.version)[0];
    if (!newest) throw new SwitchyardError('vault_locked', 'The keyring is empty.');
    this.newest = newest;
  }

  /**
   * Reads `2:<base64 of 32 bytes>,1:<base64>`; white space around entries and a final line break are allowed.
   * @param origin what people call the source, for messages: `SWITCHYARD_KEYRING`.
   * Throws `vault_locked` with a sentence that quotes nothing of the text.
   */
  static parse(text: string, origin: string): Keyring {
    const entries: KeyringEntry[] = [];
    const parts = text.trim().split(',');
    if (text.trim() === '') throw refuse(origin, 'it is empty.');
    for (const [at, part] of parts.entries()) {
      const entry = parseEntry(part.trim(), origin, at + 1);
      if (entries.some(({ version }) => version === entry.version)) {
        throw refuse(origin, `entry ${at + 1} repeats the version of an earlier one.`);
      }
      entries.push(entry);
    }
    return new Keyring(entries);
  }

  get(version: number): Uint8Array | null {
    return this.#keys.get(version) ?? null;
  }

  entries(): readonly KeyringEntry[] {
    return [...this.#keys].map(([version, key]) => ({ version, key })).sort((a, b) => b.version - a.version);
  }

  /** The same keys and a new one that seals from now on. */
  with(entry: KeyringEntry): Keyring {
    return new Keyring([...this.entries(), entry]);
  }

  /** As `parse` reads it. Secret. */
  text(): string {
    return this.entries()
      .map(({ version, key }) => `${version}:${Buffer.from(key).toString('base64')}`)
      .join(',');
  }
}

function parseEntry(entry: string, origin: string, number: number): KeyringEntry {
  const colon = entry.indexOf(':');
  if (colon < 0) throw refuse(origin, `entry ${number} is not VERSION:BASE64.`);
  const digits = entry.slice(0, colon);
  const version = Number(digits);
  if (!/^[1-9][0-9]{0,9}$/.test(digits) || version > MAX_VERSION) {
    throw refuse(origin, `the version of entry ${number} is not a whole number from 1 to ${MAX_VERSION}.`);
  }
  const encoded = entry.slice(colon + 1);
  const key = Buffer.from(encoded, 'base64');
  // Buffer skips what it does not know; only the canonical spelling comes back unchanged.
  if (key.toString('base64') !== encoded) throw refuse(origin, `the key of entry ${number} is not canonical base64.`);
  if (key.length !== KEY_BYTES) throw refuse(origin, `the key of entry ${number} is not ${KEY_BYTES} bytes long.`);
  return { version, key: Uint8Array.from(key) };
}
