import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { SwitchyardError } from '../domain/errors.ts';
import { type Said, said } from '../domain/said.ts';
import { dataFiles, writeWhole } from './files.ts';
import { Keyring } from './keyring.ts';
import type { VaultReport } from './ports.ts';

/** The operating system's keychain, on a desktop: Electron's asynchronous `safeStorage` behind a port. */
export interface Keychain {
  /** Bytes that only this user of this machine can turn back. */
  protect(text: string): Promise<Uint8Array>;
  reveal(bytes: Uint8Array): Promise<string>;
  /** Said when it protects nothing (`basic_text`); null when it does. */
  readonly weak: Said | null;
}

/** Where the keyring comes from; at most one of `text` and `file`. Without any: a key file in the data folder, which stays when a keychain comes later. */
export interface KeySourceOptions {
  /** `SWITCHYARD_KEYRING`. */
  readonly text?: string | undefined;
  /** `SWITCHYARD_KEYRING_FILE`. */
  readonly file?: string | undefined;
  readonly keychain?: Keychain | undefined;
}

export interface KeySource {
  readonly source: VaultReport['source'];
  readonly weak: Said | null;
  /** Null: the store's thread reads or makes the key file. */
  readonly keyring: Keyring | null;
  /** The keyring to rotate to: read again, or with a new key. Null: the thread renews the key file. */
  renew(): Promise<Keyring | null>;
}

/** Throws `vault_locked` with a sentence that quotes nothing of the key. */
export async function findKeySource(folder: string, options: KeySourceOptions): Promise<KeySource> {
  const { text, file, keychain } = options;
  if (text !== undefined && file !== undefined) {
    throw new SwitchyardError('vault_locked', said('vault_two_keyrings'));
  }
  if (text !== undefined) {
    const keyring = Keyring.parse(text, 'SWITCHYARD_KEYRING');
    return { source: 'environment', weak: null, keyring, renew: async () => keyring };
  }
  if (file !== undefined) {
    const read = (): Keyring => Keyring.parse(readKeyringFile(file), 'The file in SWITCHYARD_KEYRING_FILE');
    return { source: 'file', weak: null, keyring: read(), renew: async () => read() };
  }
  const { keyFile, keychainFile } = dataFiles(folder);
  // What a start without a desktop began is sealed with its key file, and the other way round: another key would open nothing.
  const begunWithKeyFile = existsSync(keyFile) && !existsSync(keychainFile);
  if (keychain && !begunWithKeyFile) return keychainSource(folder, keychain);
  if (existsSync(keychainFile) && !existsSync(keyFile)) {
    throw new SwitchyardError('vault_locked', said('vault_in_keychain'));
  }
  return { source: 'key-file', weak: said('vault_key_file'), keyring: null, renew: async () => null };
}

function readKeyringFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new SwitchyardError('vault_locked', said('vault_no_file'));
  }
}

async function keychainSource(folder: string, keychain: Keychain): Promise<KeySource> {
  const file = dataFiles(folder).keychainFile;
  let current = existsSync(file)
    ? Keyring.parse(await reveal(keychain, readFileSync(file)), 'The keyring in the keychain')
    : await keep(new Keyring([{ version: 1, key: randomBytes(32) }]));

  async function keep(keyring: Keyring): Promise<Keyring> {
    writeWhole(file, await keychain.protect(keyring.text()));
    return keyring;
  }

  return {
    source: 'keychain',
    weak: keychain.weak,
    keyring: current,
    renew: async () => {
      current = await keep(current.with({ version: current.newest.version + 1, key: randomBytes(32) }));
      return current;
    },
  };
}

async function reveal(keychain: Keychain, bytes: Uint8Array): Promise<string> {
  try {
    return await keychain.reveal(bytes);
  } catch {
    throw new SwitchyardError('vault_locked', said('vault_keychain_shut'));
  }
}
