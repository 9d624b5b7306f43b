import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as ws from 'ws';
import { FrameWriter, HEADROOM_BYTES, MAX_DATA_BYTES, MAX_MESSAGE_BYTES } from '../../agent/wire/frames.ts';
import { webSocketMessage } from '../../agent/wire/socket.ts';

/** Exported by ws, and left out of its types. */
const { Receiver } = ws as unknown as { readonly Receiver: new (options: object) => Writable };

/** A message with the room in front of it that the writer of frames leaves. */
function withRoom(length: number): Buffer {
  const block = Buffer.alloc(HEADROOM_BYTES + length, 0xee);
  for (let at = 0; at < length; at += 1) block[HEADROOM_BYTES + at] = at & 0xff;
  return block.subarray(HEADROOM_BYTES);
}

describe('a message of frames as a WebSocket carries it', () => {
  // One byte of length up to 125, three up to 65,535, nine beyond (RFC 6455, 5.2).
  it.each([
    [1, false, '8201'],
    [125, false, '827d'],
    [126, false, '827e007e'],
    [65_535, false, '827effff'],
    [65_536, false, '827f0000000000010000'],
    [MAX_MESSAGE_BYTES, false, '827f0000000000020000'],
    [1, true, '828100000000'],
    [126, true, '82fe007e00000000'],
    [65_536, true, '82ff000000000001000000000000'],
  ])('of %i bytes, masked %s, begins with %s', (length, masks, header) => {
    const message = withRoom(length);
    const whole = webSocketMessage(message, masks);
    expect(whole.subarray(0, whole.length - length).toString('hex')).toBe(header);
    expect(whole.subarray(whole.length - length).equals(withRoom(length))).toBe(true);
    expect(whole.buffer).toBe(message.buffer);
  });

  it.each([true, false])('is what ws reads, masked %s', async (masks) => {
    const lengths = [1, 125, 126, 65_535, 65_536, MAX_MESSAGE_BYTES];
    const got: Buffer[] = [];
    // ws takes unmasked frames as a client, masked ones as a server; it is fed over a connection of plain TCP.
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const connecting = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [peer] = (await once(server, 'connection')) as [Socket];
    const receiver = new Receiver({ isServer: masks, maxPayload: MAX_MESSAGE_BYTES });
    receiver.on('message', (message: Buffer) => got.push(message));
    peer.pipe(receiver);
    for (const length of lengths) connecting.write(webSocketMessage(withRoom(length), masks));
    connecting.end();
    await once(receiver, 'finish');
    server.close();
    expect(got.map((message) => message.length)).toEqual(lengths);
    for (const message of got) expect(message.equals(withRoom(message.length))).toBe(true);
  });
});

describe('the writer of frames', () => {
  it('leaves the room in front of every message, whatever is written there when it has been sent', () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.nat({ max: 300 }) },
      { weight: 1, arbitrary: fc.constantFrom(MAX_DATA_BYTES, MAX_DATA_BYTES - 1) },
      { weight: 2, arbitrary: fc.constant('flush' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const sent: Buffer[] = [];
        const copies: Buffer[] = [];
        const writer = new FrameWriter((message) => {
          expect(message.byteOffset).toBeGreaterThanOrEqual(HEADROOM_BYTES);
          expect(message.length).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
          copies.push(Buffer.from(message));
          new Uint8Array(message.buffer, message.byteOffset - HEADROOM_BYTES, HEADROOM_BYTES).fill(0xff);
          sent.push(message);
        });
        for (const [at, each] of steps.entries()) {
          if (each === 'flush') writer.flush();
          else writer.data(at + 1, Buffer.alloc(Math.min(each + 1, MAX_DATA_BYTES), at));
        }
        writer.flush();
        expect(sent.map((message) => message.toString('hex'))).toEqual(copies.map((copy) => copy.toString('hex')));
      }),
      { numRuns: 100 },
    );
  });
});
