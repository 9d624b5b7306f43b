import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { Keyring } from '../../main/store/keyring.ts';
import { keyVersionOf, type SealedPlace, Vault } from '../../main/store/vault.ts';
import { key32 } from './support.ts';

const ring = new Keyring([{ version: 1, key: key32(1) }]);
const vault = new Vault('vault-a', ring);
const place: SealedPlace = { table: 'nodes', row: '6b0e3d3e-0000-4000-8000-000000000001', column: 'sealed_key' };
const text = new TextEncoder().encode('thirty-two bytes of a node key..');

const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof SwitchyardError) return error.code;
    throw error;
  }
  return 'opened';
};

describe('the vault', () => {
  it('opens what it sealed, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (plain) => {
        expect(vault.open(vault.seal(plain, place), place)).toEqual(plain);
      }),
    );
  });

  it('adds 33 bytes: format, key version, 96-bit nonce, 128-bit tag', () => {
    const sealed = vault.seal(text, place);
    expect(sealed.length).toBe(text.length + 1 + 4 + 12 + 16);
    expect(keyVersionOf(sealed)).toBe(1);
  });

  it('never uses a nonce twice', () => {
    const nonces = Array.from({ length: 200 }, () => vault.seal(text, place).subarray(5, 17).toString('hex'));
    expect(new Set(nonces).size).toBe(200);
  });

  it('refuses every single flipped bit', () => {
    const sealed = vault.seal(text, place);
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const flipped = Buffer.from(sealed);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(codeOf(() => vault.open(flipped, place))).toMatch(/^vault_(damaged|locked)$/);
    }
  });

  it('refuses a value that was cut or is none', () => {
    const sealed = vault.seal(text, place);
    for (let length = 0; length < sealed.length; length += 1) {
      expect(codeOf(() => vault.open(sealed.subarray(0, length), place))).toBe('vault_damaged');
    }
  });

  it.each([
    ['another row', { ...place, row: '6b0e3d3e-0000-4000-8000-000000000002' }],
    ['another table', { ...place, table: 'secrets' }],
    ['another column', { ...place, column: 'sealed_value' }],
    ['parts that join to the same text', { table: 'node', row: `s${place.row}`, column: place.column }],
  ])('refuses a value that was moved to %s', (_what, elsewhere) => {
    expect(codeOf(() => vault.open(vault.seal(text, place), elsewhere))).toBe('vault_damaged');
  });

  it('refuses a value of another vault with the same key', () => {
    expect(codeOf(() => new Vault('vault-b', ring).open(vault.seal(text, place), place))).toBe('vault_damaged');
  });

  it('refuses a value relabelled with another version, though both keys are held and equal', () => {
    const both = vault.under(ring.with({ version: 2, key: key32(1) }));
    const sealed = Buffer.from(vault.seal(text, place));
    expect(both.open(sealed, place)).toEqual(text);
    sealed.writeUInt32BE(2, 1);
    expect(codeOf(() => both.open(sealed, place))).toBe('vault_damaged');
  });

  it('seals with the highest version and says which one is missing', () => {
    const newer = vault.under(
      new Keyring([
        { version: 2, key: key32(2) },
        { version: 10, key: key32(10) },
      ]),
    );
    const sealed = newer.seal(text, place);
    expect(keyVersionOf(sealed)).toBe(10);
    expect(() => vault.open(sealed, place)).toThrow('key version 10');
    expect(codeOf(() => vault.open(sealed, place))).toBe('vault_locked');
  });
});
