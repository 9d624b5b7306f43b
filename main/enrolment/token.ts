import { createHash, timingSafeEqual } from 'node:crypto';

const TOKEN_BYTES = 16;

/** 128 bits as 22 characters of base64url: the one secret of a command, good for one join. */
export function makeToken(randomBytes: (count: number) => Uint8Array): string {
  return Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
}

/** Compares in a time that tells nothing about either; digests, because only they always have one length. */
export function tokenMatches(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
