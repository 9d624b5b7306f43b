import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkAddress, listenOnAll } from '../../main/gateway/listen.ts';
import { portOwner } from '../../main/gateway/port-owner.ts';
import { startGateway, stopAll } from './harness.ts';

const open: Server[] = [];
afterEach(async () => {
  await stopAll();
  await Promise.all(open.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

async function bound(address: string, port = 0): Promise<number | null> {
  const server = createServer();
  const code = await new Promise<string | null>((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    server.listen({ host: address, port }, () => resolve(null));
  });
  if (code !== null) return null;
  open.push(server);
  const at = server.address();
  return typeof at === 'object' && at !== null ? at.port : null;
}
const hasIpv6 = (await bound('::1')) !== null;

describe('the port', () => {
  it.skipIf(!hasIpv6)('is the same on 127.0.0.1 and ::1, also when any is taken', async () => {
    const harness = await startGateway({ settings: { addresses: ['127.0.0.1', '::1'] } });
    for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
      expect((await fetch(`http://${host}:${harness.port}/healthz`)).status).toBe(200);
    }
  });

  it('an address that the machine does not have is left out', async () => {
    const harness = await startGateway({ settings: { addresses: ['127.0.0.1', '203.0.113.1'] } });
    expect((await fetch(`${harness.url}/healthz`)).status).toBe(200);
    await expect(listenOnAll(['203.0.113.1'], 0, () => createServer())).rejects.toMatchObject({
      code: 'address_absent',
    });
  });

  it('where none can be had it listens for this machine alone, and knows why', async () => {
    for (const [address, code] of [
      ['203.0.113.1', 'address_absent'],
      ['banana.invalid', 'address_unknown'],
    ] as const) {
      const harness = await startGateway({ settings: { addresses: [address] } });
      expect((await fetch(`http://127.0.0.1:${harness.port}/healthz`)).status).toBe(200);
      expect(harness.gateway.misplaced).toEqual({ address, code });
      expect([harness.gateway.addresses[0], harness.gateway.exposedInClear]).toEqual(['127.0.0.1', false]);
      await expect(checkAddress(address)).rejects.toMatchObject({ code });
    }
    // A port that is taken is another matter, and said as such.
    const port = (await bound('127.0.0.1')) ?? 0;
    await expect(startGateway({ settings: { addresses: ['203.0.113.1'], port } })).rejects.toMatchObject({
      code: 'address_in_use',
    });
    await checkAddress('127.0.0.1');
    await checkAddress('localhost');
  });

  it('that is taken is refused, with the name of who has it where that can be known', async () => {
    const port = (await bound('127.0.0.1')) ?? 0;
    const refused = startGateway({ settings: { port } });
    await expect(refused).rejects.toMatchObject({ code: 'address_in_use' });
    if (process.platform === 'linux') await expect(refused).rejects.toThrow(`(pid ${process.pid})`);
  });

  it.skipIf(!hasIpv6)('that is taken on one address is released on the others', async () => {
    const port = (await bound('::1')) ?? 0;
    await expect(listenOnAll(['127.0.0.1', '::1'], port, () => createServer())).rejects.toMatchObject({
      code: 'address_in_use',
    });
    expect(await bound('127.0.0.1', port)).toBe(port);
  });
});

describe('who listens', () => {
  it('is read from the tables of Linux', async () => {
    const proc = await mkdtemp(path.join(tmpdir(), 'proc-'));
    await mkdir(path.join(proc, 'net'));
    await mkdir(path.join(proc, '4711', 'fd'), { recursive: true });
    const row = (port: string, state: string, inode: number): string =>
      `   0: 0100007F:${port} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 0000 100 0 0 10 0`;
    // 7411 is 0x1CF3; a connection of that port (state 01) is no listener.
    await writeFile(
      path.join(proc, 'net', 'tcp'),
      ['  sl  local_address …', row('1CF3', '01', 11), row('1CF3', '0A', 22), ''].join('\n'),
    );
    await writeFile(path.join(proc, '4711', 'comm'), 'llama-server\n');
    await symlink('socket:[22]', path.join(proc, '4711', 'fd', '3'));
    expect(await portOwner(7411, proc)).toBe('llama-server (pid 4711)');
    // What the kernel calls a Node program is its thread; the command says more.
    await writeFile(path.join(proc, '4711', 'cmdline'), '/usr/bin/node\0server.js\0');
    expect(await portOwner(7411, proc)).toBe('node (pid 4711)');
    expect(await portOwner(7412, proc)).toBeNull();
    expect(await portOwner(7411, path.join(proc, 'none'))).toBeNull();
    await rm(proc, { recursive: true });
  });
});
