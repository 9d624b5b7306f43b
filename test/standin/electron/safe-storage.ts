import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { app } from './app.ts';

/** The keychain's part is played by a key file in the app's data folder. */
function key(): Buffer {
  const file = path.join(app.getPath('userData'), 'standin-keychain');
  if (!existsSync(file)) writeFileSync(file, randomBytes(32), { mode: 0o600 });
  return readFileSync(file);
}

export const safeStorage = {
  isAsyncEncryptionAvailable: async () => true,
  getSelectedStorageBackend: () => process.env.STANDIN_KEYCHAIN ?? 'gnome_libsecret',
  encryptStringAsync: async (text: string): Promise<Buffer> => {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', key(), nonce);
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from('v11'), nonce, cipher.getAuthTag(), body]);
  },
  decryptStringAsync: async (bytes: Buffer) => {
    const decipher = createDecipheriv('aes-256-gcm', key(), bytes.subarray(3, 15));
    decipher.setAuthTag(bytes.subarray(15, 31));
    const result = Buffer.concat([decipher.update(bytes.subarray(31)), decipher.final()]).toString('utf8');
    return { result, shouldReEncrypt: false };
  },
};
