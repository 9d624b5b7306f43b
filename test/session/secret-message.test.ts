import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadIdentity } from '../../agent/session/identity.ts';
import { SecretMessages } from '../../main/fleet/secret-message.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import { TestAgents } from './bench-agent.ts';

const SECRET = 'sk-or-v1-canary-of-the-socket';

/** A TLS connection to a server that keeps what it hears, and what this end handed down in one go. */
describe('a secret on a TLS socket', () => {
  const agents = new TestAgents();
  const joined: Buffer[] = [];
  let heard = Buffer.alloc(0);
  let tls: TLSSocket;
  let stop: () => void;

  beforeEach(async () => {
    const { certificatePem: cert, keyPem: key } = await loadIdentity(await agents.folder());
    const server = createServer({ cert, key }, (socket) => {
      socket.on('data', (chunk) => {
        heard = Buffer.concat([heard, chunk]);
      });
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    tls = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    tls.on('error', () => undefined);
    await new Promise<void>((resolve) => tls.once('secureConnect', () => resolve()));
    const writev = tls._writev?.bind(tls);
    tls._writev = (chunks, done) => {
      joined.push(Buffer.concat(chunks.map(({ chunk }) => Buffer.from(chunk as Buffer))));
      writev?.(chunks, done);
    };
    stop = () => {
      tls.destroy();
      server.close();
    };
    heard = Buffer.alloc(0);
    joined.length = 0;
  });
  afterEach(async () => {
    stop();
    await agents.stop();
  });

  /** A final binary frame with a zero mask, as the other end reads it. */
  const frameOf = (text: string) => {
    const bytes = Buffer.from(text);
    const head =
      bytes.length < 126 ? [0x82, 0x80 | bytes.length] : [0x82, 0x80 | 126, bytes.length >> 8, bytes.length & 255];
    return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), bytes]);
  };

  it.each([SECRET, SECRET.repeat(20)])('leaves as one frame, and nothing of it stays', async (text) => {
    const payload = Buffer.from(text);
    expect(await new SecretMessages(tls, createSystemClock()).send(payload)).toBe(true);
    expect(payload.every((byte) => byte === 0)).toBe(true);
    await expect.poll(() => heard.equals(frameOf(text))).toBe(true);
  });

  it('is never joined with what waits on a busy socket, where Node would copy it; order is kept', async () => {
    const secrets = new SecretMessages(tls, createSystemClock());
    tls.write('first ');
    const sent = [secrets.send(Buffer.from(SECRET)), secrets.send(Buffer.from('the next'))];
    tls.write('second ');
    tls.write('third ');
    expect(await Promise.all(sent)).toEqual([true, true]);
    const all = Buffer.concat([Buffer.from('first second third '), frameOf(SECRET), frameOf('the next')]);
    await expect.poll(() => heard.equals(all)).toBe(true);
    expect(Buffer.concat(joined).toString()).toBe('second third ');
  });

  it('of a socket that breaks meanwhile is zeroed and said to be lost', async () => {
    const payload = Buffer.from(SECRET);
    tls.write('first ');
    const sent = new SecretMessages(tls, createSystemClock()).send(payload);
    tls.destroy();
    expect(await sent).toBe(false);
    expect(payload.every((byte) => byte === 0)).toBe(true);
  });
});
