import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';
import type { Keyring } from './keyring.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Format, key version (u32 BE), nonce; then the ciphertext and the tag. */
const HEADER_BYTES = 1 + 4 + NONCE_BYTES;
const FORMAT = 1;

/** Where a sealed value rests. It is authenticated with the value, so a row moved or swapped does not open. */
export interface SealedPlace {
  readonly table: string;
  /** UUID of the row, never reused. */
  readonly row: string;
  readonly column: string;
}

/** Each part behind its length (u32 BE), so that no two places give the same bytes. */
function associatedData(vaultId: string, place: SealedPlace, keyVersion: number): Buffer {
  const parts = [vaultId, place.table, place.row, place.column, String(keyVersion)];
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part, 'utf8');
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}

/** Version of the key that sealed these bytes; null when they are no sealed value at all. */
export function keyVersionOf(sealed: Uint8Array): number | null {
  if (sealed.length < HEADER_BYTES + TAG_BYTES || sealed[0] !== FORMAT) return null;
  return Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length).readUInt32BE(1);
}

/** AES-256-GCM over values at rest. Holds the keyring; knows no database. */
export class Vault {
  readonly #id: string;
  readonly #keyring: Keyring;
  readonly #random: (count: number) => Uint8Array;

  /** @param random cryptographically strong bytes, for nonces. */
  constructor(id: string, keyring: Keyring, random: (count: number) => Uint8Array = randomBytes) {
    this.#id = id;
    this.#keyring = keyring;
    this.#random = random;
  }

  get keyVersion(): number {
    return this.#keyring.newest.version;
  }

  /** The same vault under another keyring; for rotation. */
  under(keyring: Keyring): Vault {
    return new Vault(this.#id, keyring, this.#random);
  }

  /** Seals with the newest key under a fresh 96-bit nonce. */
  seal(plain: Uint8Array, place: SealedPlace): Buffer {
    const { version, key } = this.#keyring.newest;
    const nonce = this.#random(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associatedData(this.#id, place, version));
    const header = Buffer.alloc(HEADER_BYTES);
    header[0] = FORMAT;
    header.writeUInt32BE(version, 1);
    header.set(nonce, 5);
    return Buffer.concat([header, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }

  /**
   * @returns the plain bytes in a buffer of their own.
   * Throws `vault_locked` when the keyring lacks the key, `vault_damaged` when the bytes or their place were changed.
   */
  open(sealed: Uint8Array, place: SealedPlace): Uint8Array {
    const version = keyVersionOf(sealed);
    if (version === null) throw new SwitchyardError('vault_damaged');
    const key = this.#keyring.get(version);
    if (!key) {
      throw new SwitchyardError('vault_locked', said('vault_lacks_key', { version }));
    }
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(5, HEADER_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(associatedData(this.#id, place, version));
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    const body = decipher.update(sealed.subarray(HEADER_BYTES, sealed.length - TAG_BYTES));
    try {
      const rest = decipher.final();
      const plain = new Uint8Array(body.length + rest.length);
      plain.set(body);
      plain.set(rest, body.length);
      return plain;
    } catch {
      throw new SwitchyardError('vault_damaged');
    } finally {
      body.fill(0);
    }
  }
}
