import { connect, createServer, type Server, type Socket } from 'node:net';

/** A network in between that can be cut and held. */
export class NetworkProxy {
  readonly #port: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #server: Server | null = null;
  #held = false;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves with the port that leads to the other. */
  async start(): Promise<number> {
    const server = createServer((inside) => {
      const outside = connect(this.#port, '127.0.0.1');
      const pair = [inside, outside] as const;
      this.#pairs.add(pair);
      for (const [from, to] of [
        [inside, outside],
        [outside, inside],
      ] as const) {
        from.on('error', () => from.destroy());
        from.on('data', (bytes) => void to.write(bytes));
        from.on('close', () => {
          this.#pairs.delete(pair);
          to.destroy();
        });
        if (this.#held) from.pause();
      }
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return address.port;
  }

  /** Every connection breaks now. */
  cut(): void {
    for (const pair of [...this.#pairs]) for (const socket of pair) socket.destroy();
  }

  /** Bytes stay where they are; the sockets live. */
  hold(): void {
    this.#held = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  release(): void {
    this.#held = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async stop(): Promise<void> {
    this.cut();
    const server = this.#server;
    if (server !== null) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
