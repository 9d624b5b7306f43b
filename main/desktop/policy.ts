/** The installers' `appId`, which Windows knows a program by. */
export const APP_ID = 'dev.switchyard.desktop';

/** The app's own pages: `app://bundle/...`. */
export const APP_SCHEME = 'app';
export const APP_ORIGIN = 'app://bundle';

/** Headers of every file that the window loads. Nothing but its own files: no inline code, no network, no frames. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Pages outside that the app may hand to the browser; exact hosts. */
const EXTERNAL_HOSTS: ReadonlySet<string> = new Set(['openrouter.ai', 'github.com']);

/** Is this address one of the app's own pages? Compared as a parsed origin, never as a prefix of text. */
export function isOwnPage(url: string): boolean {
  const parsed = parse(url);
  return parsed !== null && parsed.protocol === `${APP_SCHEME}:` && parsed.host === 'bundle';
}

/** What the window may fetch: its own files, and `data:` for what it saves and for images it draws. */
export function mayRequest(url: string): boolean {
  return isOwnPage(url) || url.startsWith('data:');
}

export function mayOpenOutside(url: string): boolean {
  const parsed = parse(url);
  return parsed !== null && parsed.protocol === 'https:' && EXTERNAL_HOSTS.has(parsed.host) && parsed.username === '';
}

function parse(url: string): URL | null {
  return URL.canParse(url) ? new URL(url) : null;
}

/** Switches that would open the window to others or take its walls down. A packaged app does not start with them. */
const FORBIDDEN_SWITCHES = [
  'remote-debugging',
  'inspect',
  'no-sandbox',
  'disable-web-security',
  'load-extension',
  'proxy-server',
] as const;

export function forbiddenSwitch(argv: readonly string[]): string | null {
  for (const argument of argv) {
    const name = /^--?([a-z-]+)/.exec(argument.toLowerCase())?.[1] ?? '';
    const found = FORBIDDEN_SWITCHES.find((forbidden) => name === forbidden || name.startsWith(`${forbidden}-`));
    if (found !== undefined) return found;
  }
  return null;
}
