import { describe, expect, it } from 'vitest';
import { admit, type GuardRules, LOOPBACK_HOSTS } from '../../main/gateway/guard.ts';

const RULES: GuardRules = {
  scheme: 'http',
  port: 7411,
  hosts: new Set([...LOOPBACK_HOSTS, 'switchyard.lan']),
  origins: new Set(['https://tool.example', 'chrome-extension://abc', 'null']),
};
const STRICT: GuardRules = { ...RULES, origins: new Set() };

function verdict(headers: readonly string[], rules = RULES, target = '/v1/models', method = 'GET'): string {
  const result = admit({ method, target, httpVersion: '1.1', rawHeaders: headers }, rules);
  return result.admitted ? 'admitted' : result.code;
}
const HOST = ['Host', '127.0.0.1:7411'];

describe('Host', () => {
  it.each([
    ['127.0.0.1:7411', 'admitted'],
    ['localhost:7411', 'admitted'],
    ['LOCALHOST:7411', 'admitted'],
    ['[::1]:7411', 'admitted'],
    ['switchyard.lan:7411', 'admitted'],
    ['127.0.0.1', 'invalid_host'],
    ['127.0.0.1:7412', 'invalid_host'],
    ['127.0.0.1:07411', 'invalid_host'],
    ['127.0.0.1:7411:7411', 'invalid_host'],
    ['127.0.0.1.:7411', 'invalid_host'],
    ['127.0.0.2:7411', 'invalid_host'],
    ['2130706433:7411', 'invalid_host'],
    ['[::ffff:127.0.0.1]:7411', 'invalid_host'],
    ['::1:7411', 'invalid_host'],
    ['evil.example:7411', 'invalid_host'],
    ['user@127.0.0.1:7411', 'invalid_host'],
    ['127.0.0.1:7411, evil.example', 'invalid_host'],
    ['', 'invalid_host'],
  ])('%s is %s', (host, expected) => {
    expect(verdict(['Host', host])).toBe(expected);
  });

  it('must come exactly once, however it is spelt', () => {
    expect(verdict([])).toBe('bad_request_line');
    expect(verdict([...HOST, 'hOsT', '127.0.0.1:7411'])).toBe('bad_request_line');
  });

  it("may leave out the scheme's own port", () => {
    expect(verdict(['Host', 'localhost'], { ...RULES, port: 80 })).toBe('admitted');
    expect(verdict(['Host', 'localhost'], { ...RULES, port: 443 })).toBe('invalid_host');
    expect(verdict(['Host', 'localhost'], { ...RULES, port: 443, scheme: 'https' })).toBe('admitted');
  });
});

describe('Origin', () => {
  it.each([
    ['http://127.0.0.1:7411', 'admitted'],
    ['http://localhost:7411', 'admitted'],
    ['https://127.0.0.1:7411', 'forbidden_origin'],
    ['http://127.0.0.1:3000', 'forbidden_origin'],
    ['http://evil.example', 'forbidden_origin'],
    ['http://127.0.0.1:7411.evil.example', 'forbidden_origin'],
    ['null', 'forbidden_origin'],
    ['chrome-extension://abc', 'forbidden_origin'],
    ['', 'forbidden_origin'],
  ])('%s is %s when nothing is listed', (origin, expected) => {
    expect(verdict([...HOST, 'Origin', origin], STRICT)).toBe(expected);
  });

  it('is admitted when it is listed exactly, also null and extensions', () => {
    for (const origin of RULES.origins) {
      expect(
        admit({ method: 'POST', target: '/v1/x', httpVersion: '1.1', rawHeaders: [...HOST, 'Origin', origin] }, RULES),
      ).toEqual({
        admitted: true,
        origin,
      });
    }
    expect(verdict([...HOST, 'Origin', 'https://tool.example:444'])).toBe('forbidden_origin');
    expect(verdict([...HOST, 'Origin', 'https://tool.example', 'Origin', 'https://tool.example'])).toBe(
      'bad_request_line',
    );
  });
});

describe('Sec-Fetch-Site', () => {
  const site = (value: string, ...more: string[]): string[] => [...HOST, 'Sec-Fetch-Site', value, ...more];
  const navigation = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Dest', 'document'];

  it('same-origin and none come in, cross-site and same-site do not', () => {
    expect(verdict(site('same-origin'))).toBe('admitted');
    expect(verdict(site('none'))).toBe('admitted');
    expect(verdict(site('cross-site'))).toBe('forbidden_origin');
    expect(verdict(site('same-site'))).toBe('forbidden_origin');
    expect(verdict(site('same-origin', 'Sec-Fetch-Site', 'cross-site'))).toBe('bad_request_line');
  });

  it('a link on another page may open the console, and nothing else', () => {
    expect(verdict(site('cross-site', ...navigation), RULES, '/console/')).toBe('admitted');
    expect(verdict(site('cross-site', ...navigation), RULES, '/')).toBe('admitted');
    expect(verdict(site('cross-site', ...navigation), RULES, '/v1/models')).toBe('forbidden_origin');
    expect(verdict(site('cross-site', ...navigation), RULES, '/console/', 'POST')).toBe('forbidden_origin');
    const framed = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Dest', 'iframe'];
    expect(verdict(site('cross-site', ...framed), RULES, '/console/')).toBe('forbidden_origin');
    expect(verdict(site('cross-site', 'Sec-Fetch-Mode', 'no-cors', 'Sec-Fetch-Dest', 'document'), RULES, '/')).toBe(
      'forbidden_origin',
    );
  });
});

it('absolute targets and other versions are malformed', () => {
  for (const target of ['http://127.0.0.1:7411/', '*', '127.0.0.1:7411', '']) {
    expect(verdict(HOST, RULES, target)).toBe('bad_request_line');
  }
  for (const httpVersion of ['1.0', '2.0', '0.9']) {
    expect(admit({ method: 'GET', target: '/', httpVersion, rawHeaders: HOST }, RULES)).toEqual({
      admitted: false,
      code: 'bad_request_line',
    });
  }
});
