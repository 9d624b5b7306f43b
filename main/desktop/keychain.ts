import type { SafeStorage } from 'electron';
import { said } from '../domain/said.ts';

/** The operating system's keychain through Electron, as the store's vault asks for it; null where there is none. */
export async function desktopKeychain(storage: SafeStorage, platform: string) {
  if (!(await storage.isAsyncEncryptionAvailable())) return null;
  const basic = platform === 'linux' && storage.getSelectedStorageBackend() === 'basic_text';
  return {
    protect: async (text: string): Promise<Uint8Array> => storage.encryptStringAsync(text),
    reveal: async (bytes: Uint8Array): Promise<string> => (await storage.decryptStringAsync(Buffer.from(bytes))).result,
    weak: basic ? said('vault_basic_text') : null,
  };
}
