import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { loadIdentity } from '../../agent/session/identity.ts';
import { decodePush } from '../../agent/wire/cloud.ts';

/** How often any of the forms stands in the writable memory of a process. */
async function copies(pid: number, forms: readonly string[]): Promise<number> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  let found = 0;
  for (const line of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
    if (match === null) continue;
    const [from, to] = [Number.parseInt(match[1] ?? '0', 16), Number.parseInt(match[2] ?? '0', 16)];
    const step = 16 * 1024 * 1024;
    for (let at = from; at < to; at += step) {
      const bytes = Buffer.alloc(Math.min(step + 1024, to - at));
      const read = await memory.read(bytes, 0, bytes.length, at).catch(() => null);
      if (read === null) continue;
      for (const form of forms) {
        for (
          let hit = bytes.indexOf(form, 0, 'latin1');
          hit >= 0 && hit < step;
          hit = bytes.indexOf(form, hit + 1, 'latin1')
        )
          found++;
      }
    }
  }
  await memory.close();
  return found;
}

it.skipIf(process.platform !== 'linux')(
  'the memory of the control plane holds no copy of a pushed key',
  { timeout: 60_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'switchyard-door-'));
    const identity = await loadIdentity(folder);
    const server = createServer({ cert: identity.certificatePem, key: identity.keyPem, minVersion: 'TLSv1.3' });
    const sockets = new WebSocketServer({ server });
    const received: string[] = [];
    sockets.on('connection', (ws) => {
      ws.on('message', (data) => {
        if (Buffer.isBuffer(data)) received.push(Buffer.from(decodePush(data).key ?? []).toString());
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const child: ChildProcess = fork(
      fileURLToPath(new URL('key-door.ts', import.meta.url)),
      [`wss://127.0.0.1:${port}/`],
      { silent: true },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += String(chunk)));
    const [{ port: door }] = await once(child, 'message');

    const key = `sk-or-v1-${randomBytes(24).toString('hex')}`;
    const half = Math.floor(key.length / 2);
    const forms = [
      key,
      key.slice(0, half),
      key.slice(half),
      Buffer.from(key).toString('base64').slice(0, -4),
      Buffer.from(key).toString('hex'),
    ];
    const put = async (body: string) => await fetch(`http://127.0.0.1:${door}/`, { method: 'PUT', body });
    expect((await put(key)).status).toBe(200);
    await expect.poll(() => received).toEqual([key]);
    // Through an error path too: refused, quoted nowhere.
    const refused = await put(`${key} ${key}`);
    expect([refused.status, (await refused.text()).includes(key.slice(0, 12))]).toEqual([400, false]);
    for (let more = 0; more < 4; more++) {
      await fetch(`http://127.0.0.1:${door}/`, { method: 'POST', body: Buffer.alloc(200_000, 'x') });
    }
    expect(await copies(child.pid ?? 0, forms)).toBe(0);
    // The scan sees what is there: the marker was put where the key is not.
    const marker = randomBytes(24).toString('hex');
    await fetch(`http://127.0.0.1:${door}/`, { method: 'POST', body: marker });
    expect(await copies(child.pid ?? 0, [marker])).toBeGreaterThan(0);
    expect(output).toBe('');
    child.kill();
    sockets.close();
    server.close();
    await rm(folder, { recursive: true });
  },
);
