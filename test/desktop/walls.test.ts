import { describe, expect, it } from 'vitest';
import { answerPage } from '../../main/desktop/page-protocol.ts';
import { forbiddenSwitch, isOwnPage, mayOpenOutside, mayRequest, PAGE_HEADERS } from '../../main/desktop/policy.ts';
import { webPreferences } from '../../main/desktop/session-walls.ts';

describe('addresses', () => {
  it('are our own only by scheme and host, not by how they begin', () => {
    expect(isOwnPage('app://bundle/index.html#/fleet')).toBe(true);
    for (const url of [
      'app://bundle.evil.example/',
      'app://other/',
      'https://bundle/',
      'app:bundle',
      'file:///x',
      'nonsense',
    ])
      expect(isOwnPage(url), url).toBe(false);
  });

  it('may be fetched when they are ours or data', () => {
    expect(mayRequest('data:image/png;base64,AAAA')).toBe(true);
    for (const url of [
      'https://example.com/',
      'http://127.0.0.1:7411/',
      'ws://127.0.0.1/',
      'blob:app://bundle/1',
      'file:///etc/passwd',
    ])
      expect(mayRequest(url), url).toBe(false);
  });

  it('are handed to the browser only over https and to listed hosts', () => {
    expect(mayOpenOutside('https://openrouter.ai/settings/keys')).toBe(true);
    for (const url of [
      'http://openrouter.ai/',
      'https://openrouter.ai.evil.example/',
      'https://openrouter.ai:8443/',
      'https://a:b@openrouter.ai/',
      'javascript:alert(1)',
    ])
      expect(mayOpenOutside(url), url).toBe(false);
  });
});

describe('the app protocol', () => {
  const files = new Map([
    ['index.html', { contentType: 'text/html', body: Buffer.from('<p>') }],
    ['assets/a.js', { contentType: 'text/javascript', body: Buffer.from('1') }],
  ]);

  it('answers bundled files with the policy on every one', async () => {
    const page = answerPage(files, 'GET', 'app://bundle/');
    expect(await page.text()).toBe('<p>');
    expect(page.headers.get('content-security-policy')).toBe(PAGE_HEADERS['content-security-policy']);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answerPage(files, 'GET', 'app://bundle/assets/a.js').headers.get('content-type')).toBe('text/javascript');
  });

  it('knows no paths: what is not in the map is not there', () => {
    for (const url of [
      'app://bundle/%2e%2e/package.json',
      'app://bundle//etc/passwd',
      'app://bundle/constructor',
      'app://other/index.html',
    ])
      expect(answerPage(files, 'GET', url).status, url).toBe(404);
    expect(answerPage(files, 'POST', 'app://bundle/index.html').status).toBe(405);
  });

  it('allows no inline code, no eval, no frames and no network', () => {
    const policy = PAGE_HEADERS['content-security-policy'] ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
  });
});

it('the window is sandboxed and isolated, and has developer tools only unpackaged', () => {
  expect(webPreferences('/p.cjs', true)).toMatchObject({
    sandbox: true,
    contextIsolation: true,
    webSecurity: true,
    nodeIntegration: false,
    webviewTag: false,
    devTools: false,
  });
  expect(webPreferences('/p.cjs', true).partition?.startsWith('persist:')).toBe(false);
  expect(webPreferences('/p.cjs', false).devTools).toBe(true);
});

it('a packaged app does not start with switches that open it to others', () => {
  for (const argument of [
    '--remote-debugging-port=9222',
    '--remote-debugging-pipe',
    '--inspect',
    '--inspect-brk=1',
    '--no-sandbox',
    '--disable-web-security',
    '--load-extension=/x',
    '--proxy-server=evil:1',
    '--Remote-Debugging-Port=1',
  ])
    expect(forbiddenSwitch(['--hidden', argument]), argument).not.toBeNull();
  expect(forbiddenSwitch(['--hidden', '--data-dir=/x', '--no-discovery', '--inspection'])).toBeNull();
});
