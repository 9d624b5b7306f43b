import { isIP } from 'node:net';

export const OPENROUTER_URL = 'https://openrouter.ai/api/v1';

/**
 * The base URL without a slash at its end, or null when a key must not go there: https only, except on loopback; no
 * credentials, query or fragment.
 */
export function safeBaseUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return null;
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) return null;
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

export function originOf(baseUrl: string): string {
  return new URL(baseUrl).origin;
}

export function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIP(hostname) === 4 && hostname.startsWith('127.');
}
