import type { ErrorCode } from '../domain/errors.ts';

/** What every way into the server has before a byte of the body: ordinary requests, upgrades, `Expect`, CONNECT. */
export interface RequestLine {
  readonly method: string;
  /** The request target as it was sent. */
  readonly target: string;
  readonly httpVersion: string;
  /** Flat name, value, name, value as received; repeated headers are still visible. */
  readonly rawHeaders: readonly string[];
}

export interface GuardRules {
  readonly scheme: 'http' | 'https';
  readonly port: number;
  /** Lower-case names that Host may carry, IPv6 in brackets, without port. */
  readonly hosts: ReadonlySet<string>;
  /** Exact origins of foreign pages that may call. */
  readonly origins: ReadonlySet<string>;
}

/** `origin`: the listed foreign origin that asks, whose answers need CORS headers; null for everybody else. */
export type GuardVerdict =
  | { readonly admitted: true; readonly origin: string | null }
  | { readonly admitted: false; readonly code: ErrorCode };

const ADMITTED: GuardVerdict = { admitted: true, origin: null };
const refused = (code: ErrorCode): GuardVerdict => ({ admitted: false, code });
const MALFORMED = refused('bad_request_line');
const WRONG_HOST = refused('invalid_host');
const FOREIGN = refused('forbidden_origin');

/** Names that always mean this endpoint. */
export const LOOPBACK_HOSTS: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * Decides whether a request may come in at all: a web page that rebinds a name to 127.0.0.1 shows in Host, a page of another
 * origin in Origin or Sec-Fetch-Site, a proxy request in its absolute target. Pure.
 */
export function admit(line: RequestLine, rules: GuardRules): GuardVerdict {
  if (line.httpVersion !== '1.1' || !line.target.startsWith('/')) return MALFORMED;
  let host: string | undefined;
  let origin: string | undefined;
  let hasAuthorization = false;
  let fetchSite: string | undefined;
  let fetchMode: string | undefined;
  let fetchDestination: string | undefined;
  for (let at = 0; at + 1 < line.rawHeaders.length; at += 2) {
    const value = line.rawHeaders[at + 1] ?? '';
    const name = line.rawHeaders[at] ?? '';
    // Names of interest have four lengths; lower-casing every header name would cost more than all the rest.
    if (name.length !== 4 && name.length !== 6 && name.length !== 13 && name.length !== 14) continue;
    switch (name.toLowerCase()) {
      case 'host':
        if (host !== undefined) return MALFORMED;
        host = value;
        break;
      case 'origin':
        if (origin !== undefined) return MALFORMED;
        origin = value;
        break;
      case 'authorization':
        // The first of two would win silently, and nobody could say whose request it was.
        if (hasAuthorization) return MALFORMED;
        hasAuthorization = true;
        break;
      case 'sec-fetch-site':
        if (fetchSite !== undefined) return MALFORMED;
        fetchSite = value;
        break;
      case 'sec-fetch-mode':
        fetchMode = value;
        break;
      case 'sec-fetch-dest':
        fetchDestination = value;
        break;
      default:
    }
  }
  if (host === undefined) return MALFORMED;
  if (!isOurs(host, rules)) return WRONG_HOST;
  if (origin !== undefined) {
    if (rules.origins.has(origin)) return { admitted: true, origin };
    const prefix = `${rules.scheme}://`;
    if (!origin.startsWith(prefix) || !isOurs(origin.slice(prefix.length), rules)) return FOREIGN;
  }
  if (fetchSite === undefined || fetchSite === 'same-origin' || fetchSite === 'none') return ADMITTED;
  // A link on another page may open the console; it may not be framed, fetched or used as an image.
  const opensConsole =
    line.method === 'GET' &&
    fetchMode === 'navigate' &&
    fetchDestination === 'document' &&
    (line.target === '/' || line.target === '/console' || line.target === '/console/');
  return opensConsole && origin === undefined ? ADMITTED : FOREIGN;
}

/** @param authority `name:port`; the port may be left out only where it is the scheme's own. */
function isOurs(authority: string, rules: GuardRules): boolean {
  const end = authority.startsWith('[') ? authority.indexOf(']') + 1 : authority.indexOf(':');
  const name = end > 0 ? authority.slice(0, end) : authority;
  const rest = end > 0 ? authority.slice(end) : '';
  if (!rules.hosts.has(name.toLowerCase())) return false;
  return rest === `:${rules.port}` || (rest === '' && rules.port === (rules.scheme === 'https' ? 443 : 80));
}
