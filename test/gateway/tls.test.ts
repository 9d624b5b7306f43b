import { request } from 'node:https';
import { afterEach, expect, it } from 'vitest';
import { certificate } from './certificate.ts';
import { type Harness, startGateway, stopAll } from './harness.ts';

afterEach(stopAll);

/** @returns status of a GET over TLS, whoever the certificate names */
function get(harness: Harness, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${harness.url}/healthz`, { headers, rejectUnauthorized: false, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

it('with a certificate everything is the same over TLS, and origins are https', async () => {
  const harness = await startGateway({ settings: { tls: await certificate() } });
  expect(harness.url).toBe(`https://127.0.0.1:${harness.port}`);
  expect(await get(harness, {})).toBe(200);
  expect(await get(harness, { origin: harness.url })).toBe(200);
  expect(await get(harness, { origin: harness.url.replace('https', 'http') })).toBe(403);
  expect(await get(harness, { host: 'evil.example' })).toBe(421);
  expect(harness.gateway.exposedInClear).toBe(false);
});

it('an address beyond loopback without a certificate is said to be exposed, and may stand in Host', async () => {
  const harness = await startGateway({ settings: { addresses: ['0.0.0.0'] } });
  expect(harness.gateway.exposedInClear).toBe(true);
  expect(harness.url).toBe(`http://127.0.0.1:${harness.port}`);
  const other = await startGateway({ settings: { addresses: ['127.0.0.2'] } });
  expect(other.gateway.exposedInClear).toBe(false);
  expect((await fetch(`${other.url}/healthz`)).status).toBe(200);
});
