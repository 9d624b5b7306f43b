import { isOwnPage, PAGE_HEADERS } from './policy.ts';

export interface PageFile {
  readonly contentType: string;
  readonly body: Uint8Array;
}

/**
 * Answers the app's own protocol from a fixed map of bundled files. A request is looked up, never turned into a path, so there is
 * nothing to climb out of.
 */
export function answerPage(files: ReadonlyMap<string, PageFile>, method: string, url: string): Response {
  if (!isOwnPage(url)) return refuse(404);
  if (method !== 'GET') return refuse(405);
  const { pathname } = new URL(url);
  const file = files.get(pathname === '/' ? 'index.html' : pathname.slice(1));
  if (!file) return refuse(404);
  return new Response(new Uint8Array(file.body), { headers: { ...PAGE_HEADERS, 'content-type': file.contentType } });
}

const refuse = (status: number): Response => new Response(null, { status, headers: PAGE_HEADERS });
