import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * Stands between a browser and a control plane and notes when each message of the console's WebSocket has passed, so that the time
 * from the control plane's push to the painted frame holds the network and the browser's own queues too.
 */
export interface Relay {
  readonly port: number;
  /** Wall clock in ms with fractions of each text message, in order, over all sockets. */
  readonly pushedAtMs: readonly number[];
  readonly bytes: () => number;
  close(): Promise<void>;
}

export const wallMs = (): number => performance.timeOrigin + performance.now();

export async function startRelay(port: number): Promise<Relay> {
  const pushedAtMs: number[] = [];
  const sockets = new Set<Socket>();
  let bytes = 0;
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const frames = new FrameCounter();
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay(true));
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      const passed = frames.push(chunk);
      client.write(chunk);
      for (let at = 0; at < passed; at += 1) pushedAtMs.push(wallMs());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    pushedAtMs,
    bytes: () => bytes,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Counts whole text messages in what a server sends after it has switched to WebSocket; its frames are never masked. */
class FrameCounter {
  #rest: Buffer = Buffer.alloc(0);
  #switched: boolean | null = null;

  push(chunk: Buffer): number {
    if (this.#switched === false) return 0;
    this.#rest = Buffer.concat([this.#rest, chunk]);
    if (this.#switched === null) {
      const end = this.#rest.indexOf('\r\n\r\n');
      if (end < 0) return 0;
      this.#switched = this.#rest.subarray(0, 12).toString('latin1') === 'HTTP/1.1 101';
      if (!this.#switched) return 0;
      this.#rest = this.#rest.subarray(end + 4);
    }
    let messages = 0;
    for (let length = frameLength(this.#rest); length !== null; length = frameLength(this.#rest)) {
      const [first = 0] = this.#rest;
      const isText = (first & 0x0f) === 1 || (first & 0x0f) === 0;
      if (isText && (first & 0x80) !== 0) messages += 1;
      this.#rest = this.#rest.subarray(length);
    }
    return messages;
  }
}

/** Null: not whole yet. */
function frameLength(bytes: Buffer): number | null {
  if (bytes.length < 2) return null;
  const short = (bytes[1] ?? 0) & 0x7f;
  if (short === 126 && bytes.length < 4) return null;
  if (short === 127 && bytes.length < 10) return null;
  const length =
    short < 126 ? 2 + short : short === 126 ? 4 + bytes.readUInt16BE(2) : 10 + Number(bytes.readBigUInt64BE(2));
  return bytes.length < length ? null : length;
}
